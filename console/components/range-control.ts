// The control for the time range of the page, in the header: relative ranges, all, or two times.
import { h } from '../dom.ts';
import type { Shortcut } from '../shortcuts.ts';
import {
  ALL,
  CUSTOM,
  findRange,
  fromLocalInput,
  RANGES,
  toBounds,
  toLocalInput,
  zoomOut,
} from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { createSegmentedControl, createTextField } from './controls.ts';

type Settings = UrlState['settings'];

export interface RangeControl {
  readonly element: HTMLElement;
  /** The two times of a custom range. */
  readonly details: HTMLElement;
  readonly shortcuts: readonly Shortcut[];
  show(settings: Settings): void;
  markInvalid(param: string | undefined): void;
}

/** `onCompare` opens what is different in the range; undefined if the token cannot call logs.compare. */
export function createRangeControl(
  onChange: (settings: Settings) => void,
  onCompare: (() => void) | undefined,
): RangeControl {
  let current: Settings = {};
  const range = createSegmentedControl('Time range', RANGES, value =>
    onChange({ range: value, ...(value === CUSTOM ? toFixedBounds(current) : { start: '', end: '' }) }),
  );
  const createTimeField = (label: string, key: 'start' | 'end') =>
    createTextField(label, { type: 'datetime-local' }, value =>
      onChange({ range: CUSTOM, [key]: fromLocalInput(value) }),
    );
  const start = createTimeField('After', 'start');
  const end = createTimeField('Up to', 'end');
  const widen = () => {
    if (current['range'] === CUSTOM) onChange(zoomOut(current));
  };
  const createButton = (label: string, click: () => void) =>
    h('button', { type: 'button', class: 'button', on: { click } }, label);
  const details = h(
    'div',
    { class: 'range-details' },
    start.element,
    end.element,
    createButton('Zoom out', widen),
    onCompare && createButton('What is different?', onCompare),
  );
  return {
    element: range.element,
    details,
    shortcuts: [
      { key: 't', description: 'Choose the time range', run: () => range.focus() },
      { key: 'z', description: 'Zoom out of a custom time range', run: widen },
    ],
    show(settings) {
      current = settings;
      const selected = findRange(settings)?.value ?? ALL;
      range.setValue(selected);
      details.hidden = selected !== CUSTOM;
      start.setValue(toLocalInput(settings['start'] ?? ''));
      end.setValue(toLocalInput(settings['end'] ?? ''));
    },
    markInvalid(param) {
      start.setInvalid(param === 'iso_timestamp_start');
      end.setInvalid(param === 'iso_timestamp_end');
    },
  };
}

/** The current range as two times, for the user to change. */
function toFixedBounds(settings: Settings): Settings {
  const { iso_timestamp_start: start, iso_timestamp_end: end } = toBounds(settings);
  return { start, end: end || new Date().toISOString() };
}
