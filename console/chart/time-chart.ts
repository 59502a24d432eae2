// A chart over time: a canvas that uPlot draws, with legend, tooltip and keyboard support. A canvas is not accessible, so
// every view with a chart also has a table of the same values.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from '../dom.ts';
import { type ChartData, type ChartOptions, toX } from './chart-data.ts';
import { createLegend, type LegendEntry } from './legend.ts';
import { createPlotOptions, onThemeChange, toColumns, toDrawingOrder } from './plot-options.ts';
import { createTooltip, describePoint } from './tooltip.ts';

export class TimeChart {
  readonly element: HTMLElement;
  readonly #options: ChartOptions;
  readonly #isStacked: boolean;
  readonly #plotHost: HTMLElement;
  readonly #title = h('h2', {});
  readonly #announcement = h('p', { class: 'visually-hidden', 'aria-live': 'polite' });
  readonly #hidden = new Set<string>();
  readonly #legend = createLegend(this.#hidden, () => this.#updatePlot());
  readonly #tooltip: ReturnType<typeof createTooltip>;
  readonly #cleanups: (() => void)[] = [];
  #plot: uPlot | undefined;
  #data: ChartData | undefined;

  constructor(title: string, options: ChartOptions) {
    this.#options = options;
    this.#isStacked = options.type === 'stacked-bars';
    this.setTitle(title);
    this.#tooltip = createTooltip(options);
    this.#plotHost = h('div', {
      class: 'plot',
      tabindex: 0,
      role: 'img',
      'aria-label': `${options.label}. Use the left and right arrow keys to read each point. The table below has all values.`,
      on: { keydown: event => this.#onKey(event), blur: () => this.#clearCursor() },
    });
    this.element = h(
      'figure',
      { class: 'card chart' },
      h('figcaption', {}, this.#title),
      this.#legend.element,
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

  render(data: ChartData, entries: readonly LegendEntry[]): void {
    const previous = this.#data;
    this.#data = data;
    this.#legend.render(entries);
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

  #createPlot(): void {
    const data = this.#data;
    const size = this.#size();
    this.#plot?.destroy();
    this.#plot = undefined;
    if (data === undefined || size.width === 0) return;
    const options = createPlotOptions(this.#options, () => this.#data ?? data, this.#hidden, size);
    const hooks = { setCursor: [() => this.#updateTooltip()] };
    this.#plot = new uPlot({ ...options, hooks }, this.#toPlotData(data), this.#plotHost);
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
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const index = Math.min(Math.max(target, 0), last);
    const x = this.#plot.data[0][index] ?? 0;
    this.#plot.setCursor({ left: this.#plot.valToPos(x, 'x'), top: 0 });
    this.#announcement.textContent = describePoint(this.#options, this.#data, this.#hidden, index);
  }

  #clearCursor(): void {
    this.#plot?.setCursor({ left: -10, top: -10 });
    this.#tooltip.hide();
  }
}
