// Bars on a logarithmic scale: the median of each system for every call.
import { median } from '../tools/statistics.mjs';
import { SYSTEM_NAMES } from './compared-table.mjs';
import { ms } from './format.mjs';
import { bar, gridLine, legend, picture, text } from './svg.mjs';

const WIDTH = 960;
const LEFT = 350;
const RIGHT = 90;
const TOP = 92;
const BAR = 15;
const GAP = 14;

export function plotBars(title, cases, systems) {
  const shown = cases
    .filter(each => systems.every(name => each.ms[name] !== undefined))
    .map(({ label, ms: samples }) => ({ label, medians: systems.map(name => median(samples[name])) }));
  const values = shown.flatMap(({ medians }) => medians);
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const scale = value => ((Math.log10(value) - low) / (high - low)) * (WIDTH - LEFT - RIGHT);
  const group = systems.length * (BAR + 1) + GAP;
  const bottom = TOP + shown.length * group;
  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return picture(WIDTH, bottom + 40, title, [
    text(20, 32, title, { name: 'title' }),
    legend(
      20,
      64,
      systems.map(name => SYSTEM_NAMES[name]),
    ),
    text(WIDTH - 20, 64, 'median, milliseconds, logarithmic: shorter is better', {
      name: 'note',
      anchor: 'end',
    }),
    decades.flatMap(value => [
      gridLine(LEFT + scale(value), TOP - 8, LEFT + scale(value), bottom),
      text(LEFT + scale(value), bottom + 22, `${value} ms`, { name: 'note', anchor: 'middle' }),
    ]),
    shown.flatMap(({ label, medians }, row) => {
      const y = TOP + row * group;
      return [
        text(LEFT - 12, y + (systems.length * (BAR + 1)) / 2 + 5, label, { anchor: 'end' }),
        ...medians.flatMap((value, color) => [
          bar(LEFT, y + color * (BAR + 1), scale(value), BAR, color),
          text(LEFT + scale(value) + 6, y + color * (BAR + 1) + 12, ms(value), { name: 'note' }),
        ]),
      ];
    }),
  ]);
}
