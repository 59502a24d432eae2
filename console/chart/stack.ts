// Numbers for the canvas: as they are for lines, summed up from the bottom for stacked bars.
import type { ChartSeries } from './model.ts';

/** The value columns in the order in which they are drawn: of a stack the highest first, so that lower ones cover it. */
export function toColumns(
  series: readonly ChartSeries[],
  stacked: boolean,
  hidden: ReadonlySet<string>,
): (number | null)[][] {
  if (!stacked) return inDrawingOrder(series, false).map(({ values }) => [...values]);
  const columns: (number | null)[][] = [];
  let below: readonly number[] = [];
  for (const { key, values } of series) {
    const beneath = below;
    const sums = values.map((value, i) => (beneath[i] ?? 0) + (hidden.has(key) ? 0 : (value ?? 0)));
    columns.unshift(sums);
    below = sums;
  }
  return columns;
}

/** The series in that same order. Of lines the faint ones come first, and the first of the others last, on top. */
export function inDrawingOrder(series: readonly ChartSeries[], stacked: boolean): readonly ChartSeries[] {
  const reversed = [...series].reverse();
  if (stacked) return reversed;
  return [
    ...reversed.filter(({ faint }) => faint === true),
    ...reversed.filter(({ faint }) => faint !== true),
  ];
}
