// The controls for the time range and the tier of the logs view.
import type { Choices } from '../api/catalog.ts';
import { createSegmentedControl, createSelect, createTextField } from '../components/controls.ts';
import { h } from '../dom.ts';
import { formatDuration } from '../format.ts';
import type { UrlState } from '../url-state.ts';
import { ALL, CUSTOM, findRange, fromLocalInput, RANGES, toLocalInput } from './time-range.ts';

type Settings = UrlState['settings'];

export interface RangeControls {
  readonly elements: readonly HTMLElement[];
  setValues(settings: Settings): void;
  markInvalid(param: string | undefined): void;
}

export function createRangeControls(
  tiers: Choices,
  updateSettings: (settings: Settings) => void,
): RangeControls {
  const range = createSegmentedControl('Range', RANGES, value => updateSettings({ range: value }));
  const tier = createSelect(
    'Tier',
    tiers.all.map(({ name, values }) => ({
      value: name,
      label: `${name} · ${formatDuration(Number(values['retention_days']) * 86_400)}`,
    })),
    {},
    value => updateSettings({ tier: value }),
  );
  const createTimeField = (label: string, key: 'start' | 'end') =>
    createTextField(label, { type: 'datetime-local' }, value =>
      updateSettings({ range: CUSTOM, [key]: fromLocalInput(value) }),
    );
  const start = createTimeField('After', 'start');
  const end = createTimeField('Up to', 'end');
  const customRange = h('div', { class: 'controls-group' }, start.element, end.element);
  return {
    elements: [range.element, tier.element, customRange],
    setValues(settings) {
      const selected = findRange(settings)?.value ?? ALL;
      range.setValue(selected);
      customRange.hidden = selected !== CUSTOM;
      tier.setValue(settings['tier'] ?? '');
      start.setValue(toLocalInput(settings['start'] ?? ''));
      end.setValue(toLocalInput(settings['end'] ?? ''));
    },
    markInvalid(param) {
      start.setInvalid(param === 'iso_timestamp_start');
      end.setInvalid(param === 'iso_timestamp_end');
    },
  };
}
