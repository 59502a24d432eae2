// A chart over time: a canvas drawn by uPlot, with a legend, a tooltip, and the keyboard. The same numbers stand in a
// table beside it, for whoever cannot see it.
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { h } from '../dom.ts';
import { type LegendEntry, makeLegend } from './legend.ts';
import { type ChartData, type ChartKind, toX } from './model.ts';
import { plotOptions } from './plot-options.ts';
import { inDrawingOrder, toColumns } from './stack.ts';
import { onThemeChange } from './theme.ts';
import { describeMoment, makeTooltip } from './tooltip.ts';

export class TimeChart {
  readonly element: HTMLElement;
  readonly #kind: ChartKind;
  readonly #plotHost: HTMLElement;
  readonly #title = h('h2', {});
  readonly #spoken = h('p', { class: 'for-screen-readers', 'aria-live': 'polite' });
  readonly #hidden = new Set<string>();
  readonly #legend = makeLegend(this.#hidden, () => this.#redraw());
  readonly #tooltip: ReturnType<typeof makeTooltip>;
  readonly #endings: (() => void)[] = [];
  #plot: uPlot | undefined;
  #data: ChartData | undefined;

  constructor(title: string, kind: ChartKind) {
    this.#kind = kind;
    this.setTitle(title);
    this.#tooltip = makeTooltip(kind);
    this.#plotHost = h('div', {
      class: 'plot',
      tabindex: 0,
      role: 'img',
      'aria-label': `${kind.label}. Left and right arrow keys read it moment by moment; the table below has all values.`,
      on: { keydown: event => this.#onKey(event), blur: () => this.#leave() },
    });
    this.element = h(
      'figure',
      { class: 'card chart' },
      h('figcaption', {}, this.#title),
      this.#legend.element,
      h('div', { class: 'plot-frame' }, this.#plotHost, this.#tooltip.element),
      this.#spoken,
    );
    const sizes = new ResizeObserver(() => this.#resize());
    sizes.observe(this.#plotHost);
    this.#endings.push(
      () => sizes.disconnect(),
      onThemeChange(() => this.#rebuild()),
    );
  }

  draw(data: ChartData, entries: readonly LegendEntry[]): void {
    const before = this.#data;
    this.#data = data;
    this.#legend.draw(entries);
    const isSame =
      before?.bucketSeconds === data.bucketSeconds &&
      before.series.map(({ key }) => key).join() === data.series.map(({ key }) => key).join();
    if (this.#plot !== undefined && isSame) this.#redraw();
    else this.#rebuild();
  }

  setTitle(title: string): void {
    this.#title.textContent = title;
  }

  close(): void {
    for (const end of this.#endings) end();
    this.#plot?.destroy();
  }

  #rebuild(): void {
    const data = this.#data;
    const size = this.#size();
    this.#plot?.destroy();
    this.#plot = undefined;
    if (data === undefined || size.width === 0) return;
    const options = plotOptions(this.#kind, () => this.#data ?? data, this.#hidden, size);
    const hooks = { setCursor: [() => this.#follow()] };
    this.#plot = new uPlot({ ...options, hooks }, this.#table(data), this.#plotHost);
  }

  #redraw(): void {
    if (this.#plot === undefined || this.#data === undefined) return;
    const { series } = this.#data;
    const drawn = inDrawingOrder(series, this.#kind.shape === 'stacked-bars');
    for (const [i, { key }] of drawn.entries()) {
      const show = !this.#hidden.has(key);
      if (this.#plot.series[i + 1]?.show !== show) this.#plot.setSeries(i + 1, { show });
    }
    this.#plot.setData(this.#table(this.#data));
  }

  #table(data: ChartData): uPlot.AlignedData {
    return [toX(data), ...toColumns(data.series, this.#kind.shape === 'stacked-bars', this.#hidden)];
  }

  #size(): { width: number; height: number } {
    return { width: this.#plotHost.clientWidth, height: this.#plotHost.clientHeight };
  }

  #resize(): void {
    const size = this.#size();
    if (size.width === 0) return;
    if (this.#plot === undefined) this.#rebuild();
    else if (this.#plot.width !== size.width || this.#plot.height !== size.height) this.#plot.setSize(size);
  }

  #follow(): void {
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
      const shift = this.#plot.bbox.left / devicePixelRatio;
      this.#tooltip.show(this.#data, this.#hidden, index, left + shift, this.#size().width);
    }
  }

  #onKey(event: KeyboardEvent): void {
    if (this.#plot === undefined || this.#data === undefined) return;
    const last = this.#data.starts.length - 1;
    const at = this.#plot.cursor.idx ?? (event.key === 'ArrowLeft' ? last + 1 : -1);
    const targets: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (event.key === 'Escape') this.#leave();
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const index = Math.min(Math.max(target, 0), last);
    const x = this.#plot.data[0][index] ?? 0;
    this.#plot.setCursor({ left: this.#plot.valToPos(x, 'x'), top: 0 });
    this.#spoken.textContent = describeMoment(this.#kind, this.#data, this.#hidden, index);
  }

  #leave(): void {
    this.#plot?.setCursor({ left: -10, top: -10 });
    this.#tooltip.hide();
  }
}
