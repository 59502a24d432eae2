// The composition root: creates all components from a configuration, step by step, and closes them in order. `startApp` is the
// server; `startLocalApp` is the same application in the process of a command.

import { resolve } from 'node:path';
import { Alerts } from './alert/alerts.ts';
import { type Receivers, readReceivers } from './alert/receivers.ts';
import { AlertStates } from './alert/state.ts';
import { ResultCache } from './cache/result-cache.ts';
import { Warmer } from './cache/warmer.ts';
import type { Address, AppConfig, ListenerName, ServeConfig } from './config.ts';
import { OperatorError } from './domain/errors.ts';
import { type Catalog, type Endpoint, listTiers, loadEndpoints } from './endpoint/catalog.ts';
import type { EndpointResult } from './endpoint/endpoint-result.ts';
import { LiveCatalog } from './endpoint/live-catalog.ts';
import { runPreflight } from './endpoint/preflight.ts';
import { endpointIdOf } from './endpoint/query-key.ts';
import type { AuthDependencies } from './http/authenticate.ts';
import { CacheHits } from './http/cache-hit.ts';
import { clientAddressReader } from './http/client-address.ts';
import { ConnectionLimit } from './http/connection-limit.ts';
import { createInject, type Inject } from './http/inject.ts';
import { type ListenerOptions, listen, tryToListen } from './http/listener.ts';
import { internalRoutes, publicRoutes } from './http/routes.ts';
import type { RouteDependencies, ServingDependencies } from './http/serving.ts';
import { readTlsPair } from './http/tls.ts';
import { UnsentResponses } from './http/unsent-responses.ts';
import { type BodyParser, BodyParserPool } from './intake/body-parser-pool.ts';
import { Erasure, type ErasureDependencies } from './intake/erasure.ts';
import { Intake } from './intake/intake.ts';
import { createStoreCallbacks, Quarantine } from './intake/quarantine.ts';
import { INTAKE_REJECT_CODES } from './logs/rejection.ts';
import type { Observe } from './observe/event.ts';
import { Metrics } from './observe/metrics.ts';
import { MetricSampler } from './sample-metrics.ts';
import { Maintenance } from './store/maintenance.ts';
import { openStore } from './store/open-store.ts';
import type { Store } from './store/store.ts';
import { Studio } from './studio/studio.ts';
import { type Clock, systemClock } from './system/clock.ts';
import { systemTimer, type Timer } from './system/timer.ts';
import { readVersion } from './system/version.ts';
import { createTokenSet, watchTokens } from './token/active-tokens.ts';
import { AuthThrottle } from './token/auth-throttle.ts';
import { LastUsedTimes } from './token/last-used.ts';
import { RateLimit } from './token/rate-limit.ts';
import { allows, createSecret, hasExpired, hashSecret, type Token } from './token/token.ts';
import { createFirstToken, type FirstToken } from './token/token-file.ts';

export interface App {
  readonly publicUrl: string;
  readonly internalUrl: string;
  readonly store: Store;
  /** Never resolves. Rejects when the embedded store has failed: every write fails until a new process opens it. */
  readonly storeFailed: Promise<never>;
  /** Loads the endpoint folders again. A problem is reported as an event, and the current endpoints stay. */
  reloadEndpoints(): Promise<void>;
  /** Stops the background jobs, waits up to 10 s for running requests, then closes the rest. Closing twice is safe. */
  close(): Promise<void>;
}

/** The application in the process of a command: all routes, but no listeners, cache or alerts. The applier is its only background job. */
export interface LocalApp {
  readonly store: Store;
  /** Handles a request as the listeners of a server do. The request needs no token and has every scope. */
  readonly inject: Inject;
  close(): Promise<void>;
}

export interface StartOptions {
  readonly clock?: Clock;
  readonly timer?: Timer;
  readonly bodyParser?: BodyParser;
  /** Default: `timer`. */
  readonly idempotencyTimer?: Pick<Timer, 'now'>;
  /** Gets the token that this startup creates. Not called if there is a tokens file, or a key in the environment. */
  readonly showFirstToken?: (token: FirstToken) => void | Promise<void>;
}

/** What every step of the startup needs. */
type Context<Config extends AppConfig = AppConfig> = ReturnType<typeof createContext<Config>>;

/** Listens from the first steps on. Until all steps are done, requests that need the store or a token get 503. */
export async function startApp(config: ServeConfig, log: Observe, options: StartOptions = {}): Promise<App> {
  const context = createContext(config, log, options);
  const { clock, timer, state, catalog, observe, closers } = context;
  const close = () => closeAll(context);
  try {
    const urls = await openListeners(context);
    const { store, quarantine } = await openData(context);
    context.connectionLimit.reserved = () => countParts(store);
    await catalog.check(store);
    const intake = await openIntake(context, store, quarantine);
    if (config.environmentKeys.length === 0)
      await createFirstToken(config.tokensFile, clock, options.showFirstToken ?? (() => {}));
    const auth = openTokens(context);
    const names = namesOf(catalog);
    const isUseful = (token: Token) => names.some(name => allows(token, 'query', name));
    if (!auth.tokens.list.some(token => isUseful(token) && !hasExpired(token, clock)))
      observe({ type: 'no_query_token', tokensFile: resolve(config.tokensFile) });
    const cache = startCache(context);
    const { retentionDays, maxDiskBytes } = config;
    const limits = { dataDirectory: config.store.dataDirectory, retentionDays, maxDiskBytes };
    const maintenance = new Maintenance(store, limits, clock, timer, observe);
    maintenance.start();
    closers.add('jobs', () => maintenance.close());
    const alertStates = new AlertStates(config.store.dataDirectory, observe);
    const erasure = await openErasure(context, { store, intake, quarantine }, async scope => {
      cache?.removeWhere(() => true);
      await alertStates.erase(scope);
    });
    const cacheHits = new CacheHits();
    const alerts = openAlerts(context, store, alertStates);
    startCatalog(context, { store, cacheHits, cache, alerts });
    if (state.hasFailed) await state.failure; // throws
    state.start(
      createServing(context, { store, cache, cacheHits, intake, erasure, quarantine, alerts, ...auth }),
      () => catalog.hasPassed && store.readStatistics().isReachable,
    );
    await alerts?.load(catalog, context.receivers());
    void erasure.resume().catch(() => {}); // reported as an event
    return { ...urls, store, storeFailed: state.failure, reloadEndpoints: () => catalog.reload(), close };
  } catch (error) {
    await close().catch(() => {}); // probably of the same cause
    throw error;
  }
}

/** `checksEndpoints`: whether to check that the store accepts the SQL of the endpoints. */
export async function startLocalApp(
  config: AppConfig,
  log: Observe,
  { checksEndpoints = false, ...options }: StartOptions & { readonly checksEndpoints?: boolean } = {},
): Promise<LocalApp> {
  const context = createContext(config, log, options);
  const { state, catalog, closers, observe } = context;
  const close = () => closeAll(context);
  const keepAlive = setInterval(() => {}, 60_000); // the timers of the components do not keep the process alive
  closers.add('store', () => clearInterval(keepAlive));
  try {
    const { store, quarantine } = await openData(context);
    if (checksEndpoints) await runPreflight(catalog, store);
    const intake = await openIntake(context, store, quarantine);
    const alertStates = new AlertStates(config.store.dataDirectory, observe);
    const erasure = await openErasure(context, { store, intake, quarantine }, scope =>
      alertStates.erase(scope),
    );
    await erasure.resume().catch(() => {}); // reported as an event; the next start repeats it
    const { auth, secret } = createLocalAuth(context);
    const cacheHits = new CacheHits();
    state.start(
      createServing(context, {
        ...{ store, cache: undefined, cacheHits, intake, erasure, quarantine, alerts: undefined },
        ...auth,
      }),
      () => true,
    );
    const dependencies = routeDependencies(context, false);
    const routes = [...publicRoutes(dependencies), ...internalRoutes(dependencies)];
    return { store, inject: createInject(routes, observe, { 'x-api-key': secret }), close };
  } catch (error) {
    await close().catch(() => {}); // probably of the same cause
    throw error;
  }
}

function createContext<Config extends AppConfig>(
  config: Config,
  log: Observe,
  {
    clock = systemClock,
    timer = systemTimer,
    bodyParser = new BodyParserPool(1),
    idempotencyTimer = timer,
  }: StartOptions,
) {
  const metrics = new Metrics({ store: config.storeName, rejectCodes: INTAKE_REJECT_CODES });
  const state = new ServerState();
  const observe = createObserve(metrics, state, log);
  const { endpointFolders, unsentBytes, minDownloadRate } = config;
  let receivers: Receivers = new Map();
  const catalog = new LiveCatalog({
    load() {
      const loading = loadConfiguredEndpoints(config);
      receivers = loading.receivers;
      return loading.endpoints;
    },
    watched: endpointFolders.custom,
    timer,
    observe,
  });
  metrics.addEndpoints(namesOf(catalog));
  checkDefaultTier(config, catalog);
  const unsentLimits = { maxBytes: unsentBytes, minBytesPerSecond: minDownloadRate };
  return {
    ...{ config, clock, timer, idempotencyTimer, bodyParser, metrics, state, observe, catalog },
    /** Those of the last load of the catalog. */
    receivers: () => receivers,
    closers: new Closers(),
    unsentResponses: new UnsentResponses(unsentLimits, timer),
    connectionLimit: new ConnectionLimit(),
  };
}

function checkDefaultTier({ defaultTier }: AppConfig, { endpoints }: Catalog): void {
  const tiers = listTiers(endpoints.map(({ definition }) => definition));
  if (defaultTier !== undefined && !tiers.includes(defaultTier))
    throw new OperatorError(`--default-tier ${defaultTier} is unknown; allowed: ${tiers.join(', ')}`);
}

/** Loads the endpoints, and the receivers that their alerts notify. Throws OperatorError if a file is broken. */
export function loadConfiguredEndpoints({
  endpointFolders,
  storeName,
  alerts,
}: Pick<AppConfig, 'endpointFolders' | 'storeName' | 'alerts'>): {
  readonly endpoints: Iterable<Endpoint>;
  readonly receivers: Receivers;
} {
  const receivers: Receivers = alerts ? readReceivers(alerts.receiversFile, alerts.readVariable) : new Map();
  const names = alerts && [...receivers.keys()];
  return { receivers, endpoints: loadEndpoints({ ...endpointFolders, receivers: names }, storeName) };
}

function closeAll({ state, closers }: Context): Promise<void> {
  state.stop();
  return closers.close();
}

/** Opens the store, and the quarantine for the records that it rejects. Locks the data directory. */
async function openData({ config, clock, observe, state, bodyParser, closers }: Context): Promise<{
  readonly store: Store;
  readonly quarantine: Quarantine;
}> {
  const quarantine = new Quarantine(config.store.dataDirectory, observe);
  closers.add(
    'quarantine',
    () => quarantine.idle(),
    () => bodyParser.close(),
  );
  const callbacks = createStoreCallbacks(quarantine, clock, observe);
  const store = await openStore({ ...config.store, clock }, { ...callbacks, storeFailed: state.fail });
  closers.add('store', store.close);
  return { store, quarantine };
}

/** Each part of the embedded store is an open file. */
function countParts(store: Store): number {
  const counts = [...(store.readStatistics().embedded?.partCountByKind.values() ?? [])];
  return counts.reduce((sum, count) => sum + count, 0);
}

function createObserve(metrics: Metrics, state: ServerState, log: Observe): Observe {
  return event => {
    metrics.record(event);
    // Once the store has failed, every error has this cause, so errors are no longer logged: the process exits with one message
    // that names the cause.
    if (!(state.hasFailed && 'error' in event)) log(event);
  };
}

/** Undefined if alerts are off. */
function openAlerts(
  { config, clock, timer, observe, closers }: Context,
  store: Store,
  states: AlertStates,
): Alerts | undefined {
  if (config.alerts === undefined) return undefined;
  const { consoleUrl } = config.alerts;
  const maxResultBytes = config.responseBytes;
  const alerts = new Alerts({ store, states, consoleUrl, clock, timer, observe, maxResultBytes });
  closers.add('jobs', () => alerts.close());
  return alerts;
}

/** Reloads the endpoints when they change, and then forgets what depends on the changed ones. */
function startCatalog(
  { catalog, metrics, closers, receivers }: Context,
  { store, cacheHits, cache, alerts }: Pick<ServingDependencies, 'store' | 'cacheHits' | 'cache' | 'alerts'>,
): void {
  catalog.start({
    store,
    onReload(reloaded, changedIds) {
      metrics.addEndpoints(namesOf(reloaded));
      cacheHits.clear();
      cache?.removeWhere(key => changedIds.has(endpointIdOf(key)));
      void alerts?.load(reloaded, receivers());
    },
  });
  closers.add('jobs', () => catalog.close());
}

function namesOf({ endpoints }: Catalog): string[] {
  return endpoints.map(({ definition }) => definition.name);
}

/** Background jobs stop first. Then the listeners close, then the intake that their requests use, then what the intake uses. */
const CLOSE_ORDER = ['jobs', 'listeners', 'intake', 'quarantine', 'store'] as const;

type Close = () => void | Promise<void>;

/** Everything that must be closed, by stage. If startup fails, everything opened so far is closed. */
class Closers {
  readonly #stages = new Map(CLOSE_ORDER.map(stage => [stage, [] as Close[]]));
  #closing: Promise<void> | undefined;

  add(stage: (typeof CLOSE_ORDER)[number], ...closers: Close[]): void {
    this.#stages.get(stage)?.push(...closers);
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeInOrder();
    return this.#closing;
  }

  /** A failure stops no other closer. Throws the first one. */
  async #closeInOrder(): Promise<void> {
    const failures: PromiseRejectedResult[] = [];
    for (const closers of this.#stages.values()) {
      const results = await Promise.allSettled(closers.map(async close => close()));
      failures.push(...results.filter(result => result.status === 'rejected'));
    }
    if (failures[0] !== undefined) throw failures[0].reason;
  }
}

/** The server's status and dependencies for the routes, while it starts, runs, fails and stops. */
class ServerState {
  #status: ReturnType<RouteDependencies['state']> = 'starting';
  #isStoreAvailable = () => true;
  #reject = (_: Error) => {};
  hasFailed = false;
  /** Never resolves. Rejects when the store has failed. */
  readonly failure = new Promise<never>((_, reject) => {
    this.#reject = reject;
  });
  /** For metrics: also while the server stops. */
  lastServing: ServingDependencies | undefined;

  constructor() {
    this.failure.catch(() => {}); // prevents an unhandled rejection if nothing waits for it
  }

  /** While the store is unavailable, intake still accepts records and the cache still serves its entries. */
  get status(): ReturnType<RouteDependencies['state']> {
    return this.#status === 'ok' && !this.#isStoreAvailable() ? 'unavailable' : this.#status;
  }

  get serving(): ServingDependencies | undefined {
    return this.#status === 'ok' ? this.lastServing : undefined;
  }

  start(serving: ServingDependencies, isStoreAvailable: () => boolean): void {
    this.lastServing = serving;
    this.#isStoreAvailable = isStoreAvailable;
    this.#status = 'ok';
  }

  stop(): void {
    this.#status = 'unavailable';
  }

  readonly fail = (error: unknown): void => {
    this.stop();
    this.hasFailed = true;
    const [reason] = (error as Error).message.split('\n', 1);
    this.#reject(
      new OperatorError(
        `the store has failed; exiting. No acknowledged data is lost; restart the server. Reason: ${reason}`,
      ),
    );
  };
}

/** Opens the intake, which applies the records that an earlier run left in the spool. */
async function openIntake(
  { config, closers, bodyParser, clock, timer, idempotencyTimer, observe }: Context,
  store: Store,
  quarantine: Quarantine,
): Promise<Intake> {
  const { retentionDays, intakeQueueBytes: queueBytes, idempotencyBytes, projectMetrics = false } = config;
  const { dataDirectory } = config.store;
  const options = { dataDirectory, retentionDays, queueBytes, idempotencyBytes, projectMetrics };
  const dependencies = { store, quarantine, bodyParser, clock, timer, idempotencyTimer, observe };
  const intake = await Intake.open(options, dependencies);
  closers.add('intake', () => intake.close());
  return intake;
}

async function openErasure(
  { config, observe, closers }: Context,
  components: Pick<ErasureDependencies, 'store' | 'intake' | 'quarantine'>,
  eraseElsewhere: ErasureDependencies['eraseElsewhere'],
): Promise<Erasure> {
  const { dataDirectory } = config.store;
  const erasure = await Erasure.open({ ...components, dataDirectory, eraseElsewhere, observe });
  closers.add('jobs', () => erasure.close());
  return erasure;
}

function routeDependencies(
  { config, clock, catalog, state, metrics }: Context,
  metricsOpen: boolean,
  internalUrl: () => string | undefined = () => undefined,
): RouteDependencies {
  const version = readVersion();
  const sampler = new MetricSampler({ config, version, state, clock });
  return {
    version,
    storeName: config.storeName,
    catalog,
    internalUrl,
    serving: () => state.serving,
    state: () => state.status,
    isRecoverable: () => !state.hasFailed,
    metricsOpen,
    renderMetrics: async () => metrics.render(await sampler.sample()),
  };
}

type ServingComponents = AuthDependencies &
  Pick<ServingDependencies, 'store' | 'cache' | 'cacheHits' | 'intake' | 'erasure' | 'alerts'> &
  Pick<ServingDependencies['backup'], 'quarantine'>;

function createServing(
  { config, clock, timer, observe, unsentResponses, closers }: Context,
  { quarantine, ...components }: ServingComponents,
): ServingDependencies {
  const { store, intake } = components;
  const studio = config.studio ? new Studio(config.store) : undefined;
  closers.add('store', () => studio?.close());
  return {
    ...components,
    studio,
    defaultTier: config.defaultTier,
    unsentResponses,
    observe,
    maxResultBytes: config.responseBytes,
    timeLimitMs: config.store.queryTimeoutSeconds * 1000,
    uploadRate: { minBytesPerSecond: config.minUploadRate, timer },
    backup: {
      ...{ store, intake, quarantine, clock, observe, tokensFile: config.tokensFile },
      dataDirectory: config.store.dataDirectory,
    },
  };
}

/** If both listeners have the same port, there is only one, which serves the routes of both. */
function isOneListener({ publicAddress, internalAddress }: ServeConfig): boolean {
  return internalAddress.port !== 0 && internalAddress.port === publicAddress.port;
}

async function openListeners(context: Context<ServeConfig>): Promise<Pick<App, 'publicUrl' | 'internalUrl'>> {
  const { config, timer, observe, closers, unsentResponses, connectionLimit } = context;
  const { publicAddress, internalAddress, corsOrigins, accessLog: hasAccessLog } = config;
  const isOne = isOneListener(config);
  let internalUrl: string | undefined;
  const dependencies = routeDependencies(context, config.metricsOpen, () => (isOne ? '/' : internalUrl));
  const [forPublic, forInternal] = [publicRoutes(dependencies), internalRoutes(dependencies)];
  const authThrottle = new AuthThrottle(timer);
  const clientAddressOf = clientAddressReader(config.trustedProxies);
  const shared = { authThrottle, clientAddressOf, unsentResponses, connectionLimit, observe, hasAccessLog };
  const open = async (name: ListenerName, address: Address, routes: ListenerOptions['routes']) => {
    // The internal listener is for machines, not for browsers.
    const options =
      name === 'public' ? { corsOrigins, tls: config.tls } : { corsOrigins: [], tls: config.internalTls };
    const listener = await listen({ name, address, routes, ...shared, ...options });
    closers.add('listeners', () => listener.close());
    return listener.url;
  };
  const publicUrl = await open('public', publicAddress, isOne ? [...forPublic, ...forInternal] : forPublic);
  internalUrl = isOne ? publicUrl : await open('internal', internalAddress, forInternal);
  return { publicUrl, internalUrl };
}

/** The errors with which the listeners of a configuration would fail to open. */
export async function findListenerProblems(config: ServeConfig): Promise<unknown[]> {
  const { tls, internalTls, publicAddress, internalAddress } = config;
  const attempts = [
    ...[tls, internalTls].map(files => async () => {
      if (files !== undefined) readTlsPair(files);
    }),
    () => tryToListen({ name: 'public', address: publicAddress }),
    async () => {
      if (!isOneListener(config)) await tryToListen({ name: 'internal', address: internalAddress });
    },
  ];
  const problems: unknown[] = [];
  for (const attempt of attempts)
    try {
      await attempt();
    } catch (error) {
      problems.push(error);
    }
  return problems;
}

function openTokens({ config, clock, timer, observe, closers }: Context<ServeConfig>): AuthDependencies {
  const tokens = watchTokens(config.tokensFile, config.environmentKeys, timer, observe);
  const lastUsed = new LastUsedTimes(config.tokensFile, clock, timer);
  closers.add(
    'jobs',
    () => tokens.close(),
    () => lastUsed.close(),
  );
  return { tokens, clock, rateLimit: new RateLimit(timer), lastUsed };
}

/** A token that only this process knows. */
function createLocalAuth({ clock, timer }: Context): {
  readonly auth: AuthDependencies;
  readonly secret: string;
} {
  const secret = createSecret();
  const scopes = ['query', 'ingest', 'metrics', 'admin'];
  const tokens = createTokenSet([{ name: 'local', sha256: hashSecret(secret), scopes }]);
  return { secret, auth: { tokens, clock, rateLimit: new RateLimit(timer), lastUsed: { record() {} } } };
}

/** Returns undefined if the cache is disabled. The warmer stops with the other jobs; requests that still run can use the cache. */
function startCache({
  config,
  timer,
  observe,
  catalog,
  closers,
}: Context<ServeConfig>): ResultCache<EndpointResult> | undefined {
  if (config.cacheBytes === 0) return undefined;
  const cache = new ResultCache<EndpointResult>(
    config.cacheBytes,
    timer,
    result => result.bytes,
    result => result.rows.length === 0,
  );
  const warmer = new Warmer(cache, timer, (key, error) => {
    const id = endpointIdOf(key);
    const endpoint = catalog.find(id)?.definition.name ?? id;
    observe({ type: 'cache_refresh_failed', endpoint, error });
  });
  warmer.start();
  closers.add('jobs', () => warmer.stop());
  return cache;
}
