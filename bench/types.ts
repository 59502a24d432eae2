// Types that several files of the benchmark share. Nothing here exists at run time.

export type Workspace = ReturnType<typeof import('./tools/workspace.mjs').openWorkspace>;

/** Receives one line about the progress of a suite. */
export type Report = (text: string) => void;

/** A project with the same records in every data set, whatever its size. */
export interface FixedProject {
  /** largest, middle or small. */
  size: string;
  project: string;
  records: number;
}

export interface Dataset {
  /** Number of records of each log kind. */
  perKind: number;
  fixedProjects: FixedProject[];
  startMicros: number;
  spanMicros: number;
}

export interface BenchRequest {
  label: string;
  endpoint: string;
  parameters: Record<string, string>;
  /** The request uses a token that is pinned to this project. */
  pinnedProject?: string;
  /** Only in the suite `studio`: the query of Studio that returns the same. */
  sql?: string;
  /** Only in the suite `growth`: the size of the project, as in `FixedProject`. */
  size?: string;
  /** Only in the suite `growth`: the label without that size. Requests with the same text share a panel of the plot. */
  query?: string;
}

export type Row = unknown[];

export interface System {
  name: string;
  /** The command line that starts it, for the results file. */
  command: string;
  /** Runs a request. `ms` is the time until the last byte; `rows` is empty unless `withRows` is set. */
  query(request: BenchRequest, withRows?: boolean): Promise<{ ms: number; rows: Row[] }>;
  diskBytes?(): number | Promise<number>;
  stop(): Promise<void>;
}

/** A system that returned a wrong result or failed. Without `request` it failed as a whole. */
export interface Fault {
  system: string;
  request?: string;
  reason: string;
}

export interface MeasuredRequest extends BenchRequest {
  rowCount: number;
  /** Milliseconds by name of the system. */
  ms: Record<string, number[]>;
}

export interface Comparison {
  commands: string[];
  cases: MeasuredRequest[];
  diskBytes: Record<string, number>;
  faults: Fault[];
}

export interface Rounds {
  warmUps: number;
  rounds: number;
  minRounds: number;
  /** No new round starts after this time, once there are `minRounds`. */
  limitMs: number;
}

/** What the suites of one run share. */
export interface Context {
  workspace: Workspace;
  createDataset: (perKind: number) => Dataset;
  largeDataset: Dataset;
  isMissing: Record<Program, boolean>;
  /** Loads the large data set on the first call. Returns its data directory, which one server at a time may open. */
  loadLargeDataset(report: Report): Promise<string>;
}

export type Program = 'wrk' | 'clickhouse' | 'postgres';

export interface Table {
  title: string;
  header: string[];
  rows: (string | number)[][];
}

export interface SuiteResults {
  peers: Comparison & { perKind: number };
  postgres: Comparison & { perKind: number };
  search: {
    perKind: number;
    postgresShare: number;
    large?: Comparison;
    /** Only Dendro. */
    alone?: Comparison;
    small?: Comparison;
    faults: Fault[];
  };
  studio: Comparison & { perKind: number; refused: Record<string, number> };
  growth: Comparison;
  service: Awaited<ReturnType<typeof import('./suites/service.mjs').measureService>>;
  alerts: Awaited<ReturnType<typeof import('./suites/alerts.mjs').measureAlerts>>;
  'http-layer': Awaited<ReturnType<typeof import('./suites/http-layer.mjs').measureHttpLayer>>;
  intake: Awaited<ReturnType<typeof import('./suites/intake.mjs').measureIntake>>;
  warming: Awaited<ReturnType<typeof import('./suites/warming.mjs').measureWarming>>;
}

export interface Results {
  date: string;
  commit: string;
  command: string;
  seconds: number;
  machine: ReturnType<typeof import('./report/results.mjs').describeMachine>;
  /** Load average of the machine before the run. */
  loadBefore: number;
  /** A suite that did not run is absent, or holds `failed` or `skipped` instead of figures. */
  suites: Partial<SuiteResults>;
}
