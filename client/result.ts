// What the client returns: rows and what the response headers say about them, explanations, and the catalog of endpoints.

/** Why rows are missing: the result reached a limit, or (`retention`) the requested start is before the retention of the tier. */
export type ClipReason = 'row-limit' | 'byte-limit' | 'time-limit' | 'retention';

/**
 * How the server obtained a result. `collapsed`: the request joined the query of another one. `request`: the client forced a
 * refresh. `bypass`: results of the endpoint are never cached.
 */
export type CacheOutcome = 'hit' | 'miss' | 'collapsed' | 'request' | 'bypass';

export interface QueryResult<Row> {
  readonly rows: readonly Row[];
  /** The time of the newest record of the log kind that the endpoint reads, ISO 8601; undefined if there is no record. */
  readonly dataThrough: string | undefined;
  /** Why rows are missing; empty if the result is complete. */
  readonly clipped: readonly ClipReason[];
  /** Pass it as the parameter `cursor` to get the next rows; undefined if there are none or the endpoint has no pages. */
  readonly nextCursor: string | undefined;
  /** The age of the result in whole seconds, from the start of the query; always 0 if the endpoint has no cache. */
  readonly ageSeconds: number;
  /** When the query ran, by the server's clock. */
  readonly ranAt: Date;
  /** From the header Cache-Status; undefined if a proxy removed it. */
  readonly cache: CacheOutcome | undefined;
}

/** Why a result is what it is: how many records remain after each condition of the query. */
export interface Explanation {
  /** The values that the query uses, after defaults, fallbacks and the token's maximum tier; null: the parameter has no value. */
  readonly parameters: Readonly<Record<string, string | null>>;
  /** The time window that the query reads, ISO 8601; null: no bound. */
  readonly window: { readonly start: string | null; readonly end: string | null };
  /**
   * The time of the newest record of the project, inside or outside the window, ISO 8601; of all projects if the query has no
   * condition on the project. null: there is none.
   */
  readonly newest: string | null;
  /** The time of the oldest of these records. */
  readonly oldest: string | null;
  readonly conditions: readonly { readonly name: string; readonly remaining: number }[];
  /** Explains the result in one sentence. */
  readonly summary: string;
}

export interface CatalogParameter {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly description: string;
  /** Only for the type `choice`. */
  readonly choices?: readonly string[];
  /** The values of each choice, such as `window_seconds`; only for the type `choice`. */
  readonly choice_values?: Readonly<Record<string, Readonly<Record<string, string | number>>>>;
  /** The choice that applies to any unlisted value; null if an unlisted value is an error. Only for the type `choice`. */
  readonly fallback?: string | null;
  /** The value of an absent parameter. Only for the types `choice`, `integer` and `boolean`, if a default is declared. */
  readonly default?: string | number | boolean;
  /** The smallest and the largest allowed value; only for the type `integer`. */
  readonly min?: number;
  readonly max?: number;
  /** Whole Unix microseconds are allowed too; only for the type `timestamp`. */
  readonly accepts_microseconds?: true;
  /** The fields that a search expression can use, by log kind; only for the type `search`. */
  readonly fields?: Readonly<Record<string, readonly string[]>>;
}

export interface CatalogColumn {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  /** False: a value is never null. True or absent: it can be. */
  readonly nullable?: boolean;
}

/** An endpoint as the catalog describes it. */
export interface CatalogEndpoint {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly max_rows: number;
  readonly cache: { readonly lifetime_seconds: number; readonly warming_seconds: number | null };
  readonly parameters: readonly CatalogParameter[];
  readonly columns: readonly CatalogColumn[];
  /** Only if the endpoint declares an alert. */
  readonly alert?: { readonly every_seconds: number; readonly severity: string };
}

/** A problem that an alert reports. */
export interface AlertInstance {
  readonly state: 'pending' | 'firing';
  /** `row`: the query returned it. `no_data`: there are no new records. `error`: the query fails. */
  readonly cause: 'row' | 'no_data' | 'error';
  readonly key: Readonly<Record<string, unknown>>;
  readonly summary: string;
  readonly started_at: string;
}

/** A problem that is over. */
export interface EndedInstance extends Omit<AlertInstance, 'state'> {
  readonly ended_at: string;
  readonly reason: string | null;
}

export interface Alert {
  readonly name: string;
  /** `removed`: the alert is no longer defined. */
  readonly state: 'ok' | 'pending' | 'firing' | 'error' | 'removed';
  readonly severity: string;
  readonly endpoint: string | null;
  readonly every_seconds: number | null;
  readonly silenced_until: string | null;
  readonly last_evaluated_at: string | null;
  /** Evaluations since the start that did not run, because earlier ones took too long. */
  readonly missed_evaluations: number;
  /** Notifications that are not delivered yet. */
  readonly undelivered: number;
  readonly instances: readonly AlertInstance[];
  /** The instances that resolved in the last 7 days, newest last. */
  readonly history: readonly EndedInstance[];
}

/** If the server returned 304, `headers` are those of the 304, and `rows` are those of the cached response. */
export function toQueryResult<Row>(headers: Headers, rows: readonly Row[]): QueryResult<Row> {
  const ageSeconds = Number(headers.get('Age')) || 0;
  const respondedAt = Date.parse(headers.get('Date') ?? '');
  return {
    rows,
    dataThrough: headers.get('Dendro-Data-Through') ?? undefined,
    clipped: (headers.get('Dendro-Clipped') ?? '').split(/,\s*/).filter(Boolean) as ClipReason[],
    nextCursor: headers.get('Dendro-Next-Cursor') ?? undefined,
    ageSeconds,
    ranAt: new Date((Number.isNaN(respondedAt) ? Date.now() : respondedAt) - ageSeconds * 1000),
    cache: readCacheOutcome(headers.get('Cache-Status') ?? ''),
  };
}

/** Reads Dendro's entry of the header Cache-Status (RFC 9211). Proxies can add their own. */
function readCacheOutcome(status: string): CacheOutcome | undefined {
  const entry = /(?:^|,)\s*dendro;([^,]*)/.exec(status)?.[1] ?? '';
  if (/(^|;)\s*hit\b/.test(entry)) return 'hit';
  if (/;\s*collapsed\b/.test(entry)) return 'collapsed';
  return /\bfwd=(miss|request|bypass)\b/.exec(entry)?.[1] as CacheOutcome | undefined;
}
