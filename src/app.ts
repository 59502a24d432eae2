// The composition root: starts everything that a configuration describes, step by step, and closes it in order.

import { ResultCache } from './cache/result-cache.ts';
import { Warmer } from './cache/warmer.ts';
import { type Address, FLAGS, type ServeConfig } from './config.ts';
import { OperatorError } from './domain/errors.ts';
import { type Catalog, loadCatalog } from './endpoint/catalog.ts';
import type { EndpointResult } from './endpoint/endpoint-result.ts';
import { Preflight } from './endpoint/preflight.ts';
import { ValidatedRequests } from './endpoint/validated-requests.ts';
import type { AuthDependencies } from './http/authenticate.ts';
import { type InternalDependencies, internalRoutes } from './http/internal-routes.ts';
import { listen } from './http/listener.ts';
import { type PublicDependencies, publicRoutes, type Service } from './http/public-routes.ts';
import type { Route } from './http/router.ts';
import { type BodyParser, BodyParserPool } from './intake/body-parser-pool.ts';
import { Intake, type IntakeDependencies } from './intake/intake.ts';
import { createStoreCallbacks, Quarantine } from './intake/quarantine.ts';
import type { Observe } from './observe/event.ts';
import { type Gauges, Metrics } from './observe/metrics.ts';
import { Maintenance } from './store/maintenance.ts';
import { openStore } from './store/open-store.ts';
import { Retention } from './store/retention.ts';
import type { Store } from './store/store.ts';
import { type Clock, MICROS_PER_SECOND, systemClock } from './system/clock.ts';
import { systemTimer, type Timer } from './system/timer.ts';
import { readVersion } from './system/version.ts';
import { watchTokens } from './token/active-tokens.ts';
import { AuthThrottle } from './token/auth-throttle.ts';
import { createFirstToken, type FirstToken } from './token/first-token.ts';
import { LastUsedTimes } from './token/last-used.ts';
import { RateLimit } from './token/rate-limit.ts';

export interface App {
  readonly publicUrl: string;
  readonly internalUrl: string;
  readonly store: Store;
  /** The token that the first start of a data directory creates. */
  readonly firstToken: FirstToken | undefined;
  /** Rejects when the store cannot continue until it is reopened. The process has to exit then. */
  readonly storeInvalidated: Promise<never>;
  /** Waits for running requests, then closes everything. Closing twice is safe. */
  close(): Promise<void>;
}

/** What every step of the start uses. */
interface Context {
  readonly config: ServeConfig;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly observe: Observe;
  readonly closers: Closers;
}

/** The listeners respond immediately: with 503 until every step is done. */
export async function startApp(
  config: ServeConfig,
  log: Observe,
  clock: Clock = systemClock,
  timer: Timer = systemTimer,
  bodyParser: BodyParser = new BodyParserPool(1),
): Promise<App> {
  const metrics = new Metrics();
  const observe: Observe = event => {
    metrics.record(event);
    log(event);
  };
  const closers = new Closers();
  const context: Context = { config, clock, timer, observe, closers };
  const state = new ServerState();
  const storeLoss = createStoreLoss();
  const close = () => {
    state.stop();
    return closers.close();
  };
  try {
    const catalog = loadCatalog(config.endpointFolders, config.storeName);
    const quarantine = new Quarantine(config.store.dataDirectory, observe);
    closers.add(
      'quarantine',
      () => quarantine.idle(),
      () => bodyParser.close(),
    );
    const urls = await openListeners(context, routeDependencies(context, catalog, state, metrics));
    const storeEvents = createStoreCallbacks(quarantine, clock, observe);
    const store = await openStore(config.store, { ...storeEvents, storeInvalidated: storeLoss.report });
    closers.add('store', store.close);
    const preflight = await startPreflight(context, catalog, store);
    const intake = await openIntake(context, { store, quarantine, bodyParser, clock, timer, observe });
    const firstToken =
      config.apiKey === undefined ? await createFirstToken(config.tokensFile, clock) : undefined;
    const auth = openTokens(context);
    const cache = startCache(context);
    startBackgroundJobs(context, store);
    state.start(
      { store, cache, validatedRequests: new ValidatedRequests(), intake, ...auth },
      () => preflight.passed && store.isReachable?.() !== false,
    );
    return { ...urls, store, firstToken, storeInvalidated: storeLoss.promise, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Nothing closes before the things that use it. */
const CLOSE_ORDER = ['jobs', 'listeners', 'intake', 'quarantine', 'store'] as const;

/** The one list of things to close. A start that fails closes what was opened until then. */
class Closers {
  readonly #closers: Record<(typeof CLOSE_ORDER)[number], (() => void | Promise<void>)[]> = {
    jobs: [],
    listeners: [],
    intake: [],
    quarantine: [],
    store: [],
  };
  #closing: Promise<void> | undefined;

  add(stage: (typeof CLOSE_ORDER)[number], ...closers: (() => void | Promise<void>)[]): void {
    this.#closers[stage].push(...closers);
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeInOrder();
    return this.#closing;
  }

  async #closeInOrder(): Promise<void> {
    for (const stage of CLOSE_ORDER) await Promise.all(this.#closers[stage].map(async close => close()));
  }
}

/** What routes see of the server while it starts, runs and stops. */
class ServerState {
  #status: ReturnType<PublicDependencies['state']> = 'starting';
  #service: Service | undefined;
  #isStoreAvailable = () => true;

  /** While the store is unavailable, intake still accepts records and the cache still serves its entries. */
  get status(): ReturnType<PublicDependencies['state']> {
    return this.#status === 'ok' && !this.#isStoreAvailable() ? 'unavailable' : this.#status;
  }

  get service(): Service | undefined {
    return this.#service;
  }

  start(service: Service, isStoreAvailable: () => boolean): void {
    this.#service = service;
    this.#isStoreAvailable = isStoreAvailable;
    this.#status = 'ok';
  }

  stop(): void {
    this.#service = undefined;
    this.#status = 'unavailable';
  }
}

function createStoreLoss(): { readonly promise: Promise<never>; readonly report: (error: unknown) => void } {
  let report = (_: unknown) => {};
  const promise = new Promise<never>((_, reject) => {
    report = error => {
      const [reason] = (error as Error).message.split('\n', 1);
      reject(
        new OperatorError(
          `DuckDB invalidated its file; exiting. No acknowledged data is lost; restart: ${reason}`,
        ),
      );
    };
  });
  promise.catch(() => {}); // not every caller waits for it
  return { promise, report };
}

/** Applies what an earlier run left in the spool. */
async function openIntake({ config, closers }: Context, dependencies: IntakeDependencies): Promise<Intake> {
  const { store, retentionDays, intakeQueueBytes } = config;
  const options = { dataDirectory: store.dataDirectory, retentionDays, queueBytes: intakeQueueBytes };
  const intake = await Intake.open(options, dependencies);
  closers.add('intake', () => intake.close());
  return intake;
}

function routeDependencies(
  { config, clock }: Context,
  catalog: Catalog,
  state: ServerState,
  metrics: Metrics,
): InternalDependencies {
  const version = readVersion();
  const startedAt = clock();
  return {
    version,
    storeName: config.storeName,
    catalog,
    service: () => state.service,
    state: () => state.status,
    metricsOpen: config.metricsOpen,
    renderMetrics: () => metrics.render(readGauges(version, startedAt, state.service)),
  };
}

function readGauges(version: string, startedAt: bigint, service?: Service): Gauges {
  const { user, system } = process.cpuUsage();
  return [
    ['dendro_info', 1, { version }],
    ['dendro_start_time_seconds', Number(startedAt / MICROS_PER_SECOND)],
    ['dendro_resident_memory_bytes', process.memoryUsage.rss()],
    ['dendro_cpu_seconds_total', (user + system) / 1e6],
    ['dendro_intake_queue_bytes', service?.intake.queuedBytes ?? 0],
    ['dendro_spool_bytes', service?.intake.spoolBytes ?? 0],
    ['dendro_cache_bytes', service?.cache?.bytes ?? 0],
  ];
}

/** If both have the same port, they share one listener on the public host. */
async function openListeners(
  context: Context,
  dependencies: InternalDependencies,
): Promise<Pick<App, 'publicUrl' | 'internalUrl'>> {
  const { publicAddress, internalAddress } = context.config;
  const routes = { public: publicRoutes(dependencies), internal: internalRoutes(dependencies) };
  if (internalAddress.port !== 0 && internalAddress.port === publicAddress.port) {
    checkSharedHost(publicAddress, internalAddress);
    const url = await openListener(context, 'public', publicAddress, [...routes.public, ...routes.internal]);
    return { publicUrl: url, internalUrl: url };
  }
  return {
    publicUrl: await openListener(context, 'public', publicAddress, routes.public),
    internalUrl: await openListener(context, 'internal', internalAddress, routes.internal),
  };
}

/** The internal listener is for machines in the platform's own network: no browser calls it. */
const INTERNAL_LISTENER = { corsOrigins: [], tls: undefined };

async function openListener(
  { config, observe, closers }: Context,
  name: 'public' | 'internal',
  address: Address,
  routes: readonly Route[],
): Promise<string> {
  const { corsOrigins, tls } = name === 'public' ? config : INTERNAL_LISTENER;
  const listener = await listen({ name, address, routes, corsOrigins, tls, observe });
  closers.add('listeners', () => listener.close());
  return listener.url;
}

function checkSharedHost({ host: publicHost }: Address, { host }: Address): void {
  if (host !== publicHost && host !== FLAGS['internal-host'].default)
    throw new OperatorError(
      `--internal-host ${host} differs from --host ${publicHost}, but both use the same port; use one host or two ports`,
    );
}

async function startPreflight(
  { timer, observe, closers }: Context,
  catalog: Catalog,
  store: Store,
): Promise<Preflight> {
  const preflight = new Preflight(catalog, store, timer, observe);
  closers.add('jobs', () => preflight.close());
  await preflight.start();
  return preflight;
}

function openTokens({ config, clock, timer, observe, closers }: Context): AuthDependencies {
  const tokens = watchTokens(config.tokensFile, config.apiKey, timer, observe);
  const lastUsed = new LastUsedTimes(config.tokensFile, clock, timer);
  closers.add(
    'jobs',
    () => tokens.close(),
    () => lastUsed.close(),
  );
  return { tokens, clock, rateLimit: new RateLimit(timer), authThrottle: new AuthThrottle(timer), lastUsed };
}

/** Undefined if the cache is disabled. Only the warmer stops with the other jobs: the cache serves until the listeners close. */
function startCache({ config, timer, closers }: Context): ResultCache<EndpointResult> | undefined {
  if (config.cacheBytes === 0) return undefined;
  const cache = new ResultCache<EndpointResult>(config.cacheBytes, result => result.bytes, timer);
  const warmer = new Warmer(cache, timer, config.warmConcurrency);
  warmer.start();
  closers.add('jobs', () => warmer.stop());
  return cache;
}

function startBackgroundJobs({ config, clock, timer, observe, closers }: Context, store: Store): void {
  const retention = new Retention(store, config.retentionDays, clock, timer, observe);
  const maintenance = new Maintenance(store, clock, timer, observe);
  retention.start();
  maintenance.start();
  closers.add(
    'jobs',
    () => retention.close(),
    () => maintenance.close(),
  );
}
