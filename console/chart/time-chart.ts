// A chart over time: a canvas that uPlot draws, with legend, tooltip, selection of ranges, and keyboard support. A canvas is not
// accessible, so every view with a chart also has a table of the same values.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from '../dom.ts';
import { onThemeChange } from '../theme.ts';
import { type ChartData, type ChartOptions, toTimeRange, toX } from './chart-data.ts';
import { hasIncompleteBuckets, hatchBackground, hatchBars } from './hatching.ts';
import { createLegend, type LegendEntry } from './legend.ts';
import { createPlotOptions, readPalette, toColumns, toDrawingOrder } from './plot-options.ts';
import { createTooltip, describePoint } from './tooltip.ts';

const NO_SELECTION = { left: 0, top: 0, width: 0, height: 0 };

export class TimeChart {
  readonly element: HTMLElement;
  readonly #options: ChartOptions;
  readonly #isStacked: boolean;
  readonly #plotHost: HTMLElement;
  readonly #title = h('h2', {});
  readonly #incompleteHint = h('span', { hidden: true }, h('i', { class: 'swatch hatched' }), 'incomplete');
  readonly #note = h('p', { class: 'chart-note', hidden: true });
  readonly #announcement = h('p', { class: 'visually-hidden', 'aria-live': 'polite' });
  readonly #hidden = new Set<string>();
  readonly #legend = createLegend(this.#hidden, () => this.#updatePlot());
  readonly #tooltip: ReturnType<typeof createTooltip>;
  readonly #cleanups: (() => void)[] = [];
  #plot: uPlot | undefined;
  #data: ChartData | undefined;
  /** The bucket at which a selection with the keyboard starts. */
  #anchor: number | undefined;
  /** The mouse button was released after a drag, so the click that follows opens no bucket. */
  #didDrag = false;

  constructor(title: string, options: ChartOptions) {
    this.#options = options;
    this.#isStacked = options.type === 'stacked-bars';
    this.setTitle(title);
    this.#tooltip = createTooltip(options);
    this.#plotHost = this.#createPlotHost();
    this.element = h(
      'figure',
      { class: 'card chart' },
      h(
        'figcaption',
        {},
        this.#title,
        h(
          'p',
          { class: 'chart-hints' },
          this.#incompleteHint,
          h('span', { class: 'mouse-hint' }, describeMouse(options)),
        ),
      ),
      this.#legend.element,
      this.#note,
      h('div', { class: 'plot-frame' }, this.#plotHost, this.#tooltip.element),
      this.#announcement,
    );
    const sizes = new ResizeObserver(() => this.#resize());
    sizes.observe(this.#plotHost);
    this.#cleanups.push(
      () => sizes.disconnect(),
      onThemeChange(() => this.#createPlot()),
    );
  }

  /** The note explains what the chart does not show. */
  render(data: ChartData, entries: readonly LegendEntry[], note = ''): void {
    const previous = this.#data;
    this.#data = data;
    this.#legend.render(entries);
    this.#note.textContent = note;
    this.#note.hidden = note === '';
    this.#incompleteHint.hidden = !hasIncompleteBuckets(data);
    const hasSameOptions =
      previous?.bucketSeconds === data.bucketSeconds &&
      previous.series.map(({ key }) => key).join() === data.series.map(({ key }) => key).join();
    if (this.#plot !== undefined && hasSameOptions) this.#updatePlot();
    else this.#createPlot();
  }

  setTitle(title: string): void {
    this.#title.textContent = title;
  }

  close(): void {
    for (const cleanUp of this.#cleanups) cleanUp();
    this.#plot?.destroy();
  }

  #createPlotHost(): HTMLElement {
    const { label, height = '', onSelectRange, onOpenBucket } = this.#options;
    const keys = [
      'Use the left and right arrow keys to read each point.',
      onSelectRange === undefined ? '' : 'Hold Shift to select a range, and press Enter to zoom.',
      describeEnter(this.#options),
      'The table below has all values.',
    ];
    return h('div', {
      class: `plot ${height} ${onOpenBucket === undefined ? '' : 'clickable'}`,
      tabindex: 0,
      role: 'img',
      'aria-label': `${label}. ${keys.filter(text => text !== '').join(' ')}`,
      on: { keydown: event => this.#onKey(event), blur: () => this.#clearCursor() },
    });
  }

  #createPlot(): void {
    const data = this.#data;
    const size = this.#size();
    this.#plot?.destroy();
    this.#plot = undefined;
    if (data === undefined || size.width === 0) return;
    const getData = () => this.#data ?? data;
    const options = createPlotOptions(this.#options, getData, this.#hidden, size);
    const { grid } = readPalette();
    const hooks: uPlot.Hooks.Arrays = {
      setCursor: [() => this.#updateTooltip()],
      setSelect: [() => this.#reportDrag()],
      [this.#isStacked ? 'draw' : 'drawClear']: [
        (plot: uPlot) =>
          this.#isStacked ? hatchBars(plot, getData()) : hatchBackground(plot, getData(), grid),
      ],
    };
    this.#plot = new uPlot({ ...options, hooks }, this.#toPlotData(data), this.#plotHost);
    this.#plot.over.addEventListener('mousedown', () => {
      this.#didDrag = false;
    });
    this.#plot.over.addEventListener('click', () => this.#onClick());
  }

  #updatePlot(): void {
    if (this.#plot === undefined || this.#data === undefined) return;
    for (const [i, { key }] of toDrawingOrder(this.#data.series, this.#isStacked).entries()) {
      const show = !this.#hidden.has(key);
      if (this.#plot.series[i + 1]?.show !== show) this.#plot.setSeries(i + 1, { show });
    }
    this.#plot.setData(this.#toPlotData(this.#data));
  }

  #toPlotData(data: ChartData): uPlot.AlignedData {
    return [toX(data), ...toColumns(data.series, this.#isStacked, this.#hidden)];
  }

  #size(): { width: number; height: number } {
    return { width: this.#plotHost.clientWidth, height: this.#plotHost.clientHeight };
  }

  #resize(): void {
    const size = this.#size();
    if (size.width === 0) return;
    if (this.#plot === undefined) this.#createPlot();
    else if (this.#plot.width !== size.width || this.#plot.height !== size.height) this.#plot.setSize(size);
  }

  #updateTooltip(): void {
    const index = this.#plot?.cursor.idx;
    const left = this.#plot?.cursor.left ?? -1;
    if (
      this.#plot === undefined ||
      this.#data === undefined ||
      index === null ||
      index === undefined ||
      left < 0
    )
      this.#tooltip.hide();
    else {
      const plotLeft = this.#plot.bbox.left / devicePixelRatio;
      this.#tooltip.show(this.#data, this.#hidden, index, left + plotLeft, this.#size().width);
    }
  }

  #reportDrag(): void {
    const plot = this.#plot;
    if (plot === undefined || this.#data === undefined || plot.select.width === 0) return;
    const { left, width } = plot.select;
    const range = toTimeRange(this.#data, plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
    this.#didDrag = true;
    plot.setSelect(NO_SELECTION, false);
    this.#options.onSelectRange?.(range);
  }

  #onClick(): void {
    const left = this.#plot?.cursor.left ?? -1;
    if (this.#plot === undefined || this.#data === undefined || this.#didDrag || left < 0) return;
    const seconds = this.#plot.posToVal(left, 'x');
    this.#options.onOpenBucket?.(toTimeRange(this.#data, seconds, seconds), this.#findSeries());
  }

  /** The series of the bar under the cursor; undefined above the bars. A chart with one line has only this series. */
  #findSeries(): string | undefined {
    const { series } = this.#data ?? { series: [] };
    const plot = this.#plot;
    const index = plot?.cursor.idx ?? -1;
    if (plot === undefined || !this.#isStacked) return series.length === 1 ? series[0]?.key : undefined;
    const value = plot.posToVal(plot.cursor.top ?? 0, 'y');
    const visible = series.filter(({ key }) => !this.#hidden.has(key));
    let top = 0;
    return visible.find(({ values }) => {
      top += values[index] ?? 0;
      return value <= top;
    })?.key;
  }

  #onKey(event: KeyboardEvent): void {
    if (this.#plot === undefined || this.#data === undefined) return;
    const last = this.#data.starts.length - 1;
    const current = this.#plot.cursor.idx ?? (event.key === 'ArrowLeft' ? last + 1 : -1);
    const targets: Record<string, number> = {
      ArrowLeft: current - 1,
      ArrowRight: current + 1,
      Home: 0,
      End: last,
    };
    if (event.key === 'Escape') this.#clearCursor();
    if (event.key === 'Enter') this.#onEnter(current);
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const index = Math.min(Math.max(target, 0), last);
    this.#moveCursor(this.#plot.valToPos(this.#plot.data[0][index] ?? 0, 'x'), 0);
    if (event.shiftKey && this.#options.onSelectRange !== undefined)
      this.#selectFrom(this.#anchor ?? Math.min(Math.max(current, 0), last), index);
    else this.#clearSelection();
    this.#announcement.textContent = describePoint(this.#options, this.#data, this.#hidden, index);
  }

  #moveCursor(left: number, top: number): void {
    // The third argument, which the types lack, publishes the position to the charts of the same group.
    const setCursor = this.#plot?.setCursor as
      | ((position: { left: number; top: number }, fireHook: boolean, publish: boolean) => void)
      | undefined;
    setCursor?.({ left, top }, true, true);
  }

  #selectFrom(anchor: number, index: number): void {
    const plot = this.#plot;
    if (plot === undefined || this.#data === undefined) return;
    this.#anchor = anchor;
    const { starts, bucketSeconds } = this.#data;
    const left = plot.valToPos(starts[Math.min(anchor, index)] ?? 0, 'x');
    const right = plot.valToPos((starts[Math.max(anchor, index)] ?? 0) + bucketSeconds, 'x');
    plot.setSelect({ left, top: 0, width: right - left, height: plot.bbox.height / devicePixelRatio }, false);
  }

  #onEnter(index: number): void {
    const x = this.#plot?.data[0] ?? [];
    const [from, to] = [this.#anchor ?? index, index].sort((a, b) => a - b).map(i => x[i]);
    if (this.#data === undefined || from === undefined || to === undefined) return;
    const range = toTimeRange(this.#data, from, to);
    if (this.#anchor === undefined) this.#options.onOpenBucket?.(range, undefined);
    else {
      this.#clearCursor();
      this.#options.onSelectRange?.(range);
    }
  }

  #clearSelection(): void {
    this.#anchor = undefined;
    this.#plot?.setSelect(NO_SELECTION, false);
  }

  #clearCursor(): void {
    this.#clearSelection();
    this.#moveCursor(-10, -10);
    this.#tooltip.hide();
  }
}

function describeEnter({ onOpenBucket }: ChartOptions): string {
  return onOpenBucket === undefined ? '' : 'Press Enter to open the logs of a point.';
}

function describeMouse({ onSelectRange, onOpenBucket, type }: ChartOptions): string {
  const hints = [
    onSelectRange === undefined ? '' : 'Drag to zoom',
    onOpenBucket === undefined ? '' : `click a ${type === 'lines' ? 'point' : 'bar'} for its logs`,
  ].filter(text => text !== '');
  const text = hints.join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}
