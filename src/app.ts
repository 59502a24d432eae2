// The composition root: makes everything from a configuration and hands out what can be closed.

import { ResultCache } from './cache/result-cache.ts';
import { Warmer } from './cache/warmer.ts';
import { type Address, FLAGS, type ServeConfig } from './config.ts';
import { OperatorError } from './domain/errors.ts';
import { loadCatalog } from './endpoint/catalog.ts';
import type { EndpointResult } from './endpoint/endpoint-result.ts';
import { Preflight } from './endpoint/preflight.ts';
import { ValidatedRequests } from './endpoint/validated-requests.ts';
import { type InternalDependencies, internalRoutes } from './http/internal-routes.ts';
import { type Listener, listen } from './http/listener.ts';
import { type PublicDependencies, publicRoutes, type Service } from './http/public-routes.ts';
import type { Route } from './http/router.ts';
import { type BodyParser, BodyParserPool } from './intake/body-parser.ts';
import { Intake } from './intake/intake.ts';
import { createStoreEvents, Quarantine } from './intake/quarantine.ts';
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
  /** The token made at the very first start. */
  readonly firstToken: FirstToken | undefined;
  /** Fails when the store can do nothing more until it is opened anew: the program has to end then. */
  readonly storeLost: Promise<never>;
  /** Lets running calls finish, then closes the store. Closing twice is fine. */
  close(): Promise<void>;
}

/** Listens at once, and answers 503 until the store is open. */
export async function startApp(
  config: ServeConfig,
  tell: Observe,
  clock: Clock = systemClock,
  timer: Timer = systemTimer,
  bodyParser: BodyParser = new BodyParserPool(1),
): Promise<App> {
  const version = readVersion();
  const metrics = new Metrics();
  const observe: Observe = event => {
    metrics.record(event);
    tell(event);
  };
  const catalog = loadCatalog(config.endpointFolders, config.storeName);
  const startedAt = clock();
  let service: Service | undefined;
  let state: ReturnType<PublicDependencies['state']> = 'starting';
  /** Where the store is out of reach, records are taken in all the same, and what is cached is answered. */
  let canServe = () => true;
  const { dataDirectory } = config.store;
  const quarantine = new Quarantine(dataDirectory, observe);
  let intake: Intake | undefined;
  const parts: InternalDependencies = {
    version,
    storeName: config.storeName,
    catalog,
    service: () => service,
    state: () => (state === 'ok' && !canServe() ? 'unavailable' : state),
    metricsOpen: config.metricsOpen,
    renderMetrics: () => metrics.render(readGauges(version, startedAt, intake, service)),
  };

  let loseStore = (_: unknown) => {};
  const storeLost = new Promise<never>((_, reject) => {
    loseStore = error => reject(asLostStore(error));
  });
  storeLost.catch(() => {}); // for whoever does not wait for it

  const closers: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;
  const close = () => {
    state = 'unavailable';
    service = undefined;
    closing ??= closers.reduce((before, closer) => before.then(closer), Promise.resolve());
    return closing;
  };
  const listeners: Listener[] = [];
  closers.push(async () => {
    await Promise.all(listeners.map(listener => listener.close()));
  });
  const open: OpenListener = async (name, address, routes) => {
    const { corsOrigins, tls } = name === 'public' ? config : INTERNAL_LISTENER;
    const listener = await listen({ name, address, routes, corsOrigins, tls, observe });
    listeners.push(listener);
    return listener;
  };

  try {
    const [publicListener, internalListener] = await openListeners(config, parts, open);
    const store = await openStore(config.store, {
      ...createStoreEvents(quarantine, clock, observe),
      storeLost: loseStore,
    });
    closers.push(async () => {
      await intake?.close();
      await quarantine.idle();
      await bodyParser.close();
    }, store.close);
    const storeCheck = new Preflight(catalog, store, timer, observe);
    await storeCheck.start();
    intake = await Intake.open(
      { dataDirectory, retentionDays: config.retentionDays, queueBytes: config.intakeQueueBytes },
      { store, quarantine, bodyParser, clock, timer, observe },
    );
    const firstToken =
      config.apiKey === undefined ? await createFirstToken(config.tokensFile, clock) : undefined;
    const tokens = watchTokens(config.tokensFile, config.apiKey, timer, observe);
    const lastUsed = new LastUsedTimes(config.tokensFile, clock, timer);
    const cache = openCache(config, timer);
    const retention = new Retention(store, config.retentionDays, clock, timer, observe);
    retention.start();
    const tidying = new Maintenance(store, clock, timer, observe);
    tidying.start();
    closers.unshift(async () => {
      await storeCheck.close();
      await retention.close();
      tidying.close();
      cache.close();
      tokens.close();
      lastUsed.close();
    });
    const rateLimit = new RateLimit(timer);
    const authThrottle = new AuthThrottle(timer);
    const validatedRequests = new ValidatedRequests();
    const door = { tokens, rateLimit, authThrottle, lastUsed };
    service = { store, clock, cache: cache.results, validatedRequests, ...door, intake };
    state = 'ok';
    canServe = () => storeCheck.passed && store.isReachable?.() !== false;
    const [publicUrl, internalUrl] = [publicListener.url, internalListener.url];
    return { publicUrl, internalUrl, store, firstToken, storeLost, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function asLostStore(error: unknown): OperatorError {
  const [reason] = (error as Error).message.split('\n', 1);
  return new OperatorError(
    `the program ends, since its file has to be opened anew; nothing that was acknowledged is lost, start it again: ${reason}`,
  );
}

type OpenListener = (
  name: 'public' | 'internal',
  address: Address,
  routes: readonly Route[],
) => Promise<Listener>;

/** It is for machines of the platform, in its own network: no browser calls it. */
const INTERNAL_LISTENER = { corsOrigins: [], tls: undefined };

/** Given the same port, both share one listener, on the public host. */
async function openListeners(
  { publicAddress, internalAddress }: ServeConfig,
  parts: InternalDependencies,
  open: OpenListener,
): Promise<[Listener, Listener]> {
  if (internalAddress.port !== 0 && internalAddress.port === publicAddress.port) {
    const { host } = internalAddress;
    if (host !== publicAddress.host && host !== FLAGS['internal-host'].default)
      throw new OperatorError(
        `--internal-host ${host} is not --host ${publicAddress.host}, but both share one port: give one host or two ports`,
      );
    const shared = await open('public', publicAddress, [...publicRoutes(parts), ...internalRoutes(parts)]);
    return [shared, shared];
  }
  return [
    await open('public', publicAddress, publicRoutes(parts)),
    await open('internal', internalAddress, internalRoutes(parts)),
  ];
}

function readGauges(version: string, startedAt: bigint, intake?: Intake, service?: Service): Gauges {
  const { user, system } = process.cpuUsage();
  return [
    ['dendro_info', 1, { version }],
    ['dendro_start_time_seconds', Number(startedAt / MICROS_PER_SECOND)],
    ['dendro_resident_memory_bytes', process.memoryUsage.rss()],
    ['dendro_cpu_seconds_total', (user + system) / 1e6],
    ['dendro_intake_queue_bytes', intake?.queuedBytes ?? 0],
    ['dendro_spool_bytes', intake?.spoolBytes ?? 0],
    ['dendro_cache_bytes', service?.cache?.bytes ?? 0],
  ];
}

/** A cache and what keeps it warm. Warming ends first when the program stops; what is cached serves until the end. */
function openCache({ cacheBytes, warmConcurrency }: ServeConfig, timer: Timer) {
  if (cacheBytes === 0) return { results: undefined, close: () => {} };
  const results = new ResultCache<EndpointResult>(cacheBytes, answer => answer.bytes, timer);
  const warmer = new Warmer(results, timer, warmConcurrency);
  warmer.start();
  return { results, close: () => warmer.stop() };
}
