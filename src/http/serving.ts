// What the routes depend on. Most of it exists only while the server is neither starting nor stopping.
import type { Alerts } from '../alert/alerts.ts';
import type { BackupDependencies } from '../backup/take-backup.ts';
import { DendroError } from '../domain/errors.ts';
import type { Catalog } from '../endpoint/catalog.ts';
import type { EndpointDependencies } from '../endpoint/run-endpoint.ts';
import type { Erasure } from '../intake/erasure.ts';
import type { Intake } from '../intake/intake.ts';
import type { Observe } from '../observe/event.ts';
import type { Store, StoreName } from '../store/store.ts';
import type { Studio } from '../studio/studio.ts';
import type { HitDependencies } from './cache-hit.ts';
import type { UploadRate } from './request-body.ts';
import type { UnsentResponses } from './unsent-responses.ts';

/** What routes need to serve requests. Exists from the end of startup to the stop, even while the store is unavailable. */
export interface ServingDependencies extends EndpointDependencies, HitDependencies {
  readonly observe: Observe;
  readonly store: Store;
  /** The tier of a request that names none; undefined: what the endpoint declares. */
  readonly defaultTier?: string | undefined;
  /** Undefined: the parameter `sql` is ignored. */
  readonly studio?: Studio | undefined;
  readonly unsentResponses: UnsentResponses;
  readonly intake: Intake;
  readonly erasure: Erasure;
  /** Undefined: alerts are off. */
  readonly alerts: Alerts | undefined;
  readonly uploadRate: UploadRate;
  readonly backup: BackupDependencies;
}

/** What the routes need from the start of the listeners on. */
export interface RouteDependencies {
  readonly version: string;
  readonly storeName: StoreName;
  readonly catalog: Catalog;
  /** The URL of the internal listener, for requests with a valid token. `/` if it is the public one too; undefined: there is none. */
  readonly internalUrl?: () => string | undefined;
  /** Undefined while the server starts or stops. */
  readonly serving: () => ServingDependencies | undefined;
  readonly state: () => 'starting' | 'ok' | 'unavailable';
  /** False if this process cannot recover by itself: only a restart helps. */
  readonly isRecoverable: () => boolean;
  /** Whether /metrics is served without a token. */
  readonly metricsOpen: boolean;
  /** Returns the Prometheus text format. */
  readonly renderMetrics: () => Promise<string>;
}

/**
 * Called before authentication: while the server starts, a client gets 503 and retries. A 401 would make log shippers drop their
 * records.
 */
export function requireServing({ serving, state }: RouteDependencies): ServingDependencies {
  const ready = serving();
  if (ready === undefined)
    throw new DendroError(
      'unavailable',
      state() === 'starting' ? 'the server is starting' : 'the server is stopping',
    );
  return ready;
}
