// What the client returns: rows and what the response headers say about them, explanations, and the catalog of endpoints.

/** Why rows are missing from a result. `retention`: the requested start is before the retention limit of the tier. */
export type ClipReason = 'row-limit' | 'byte-limit' | 'time-limit' | 'retention';

/** How the server obtained a result. `collapsed`: it joined the query of another request. `bypass`: it is never cached. */
export type CacheOutcome = 'hit' | 'miss' | 'collapsed' | 'request' | 'bypass';

export interface QueryResult<Row> {
  readonly rows: readonly Row[];
  /** The time of the newest record that the query could see, ISO 8601; undefined if there is no record. */
  readonly dataThrough: string | undefined;
  /** Why rows are missing; empty if the result is complete. */
  readonly clipped: readonly ClipReason[];
  /** Pass it as the parameter `cursor` to get the next rows; undefined if there are none or the endpoint has no pages. */
  readonly nextCursor: string | undefined;
  /** Seconds between the query and the response; more than 0 if the result was cached. */
  readonly ageSeconds: number;
  /** When the query ran, by the server's clock. */
  readonly ranAt: Date;
  /** Undefined if a proxy removed the header. */
  readonly cache: CacheOutcome | undefined;
}

/** Why a result is what it is: how many records remain after each condition of the query. */
export interface Explanation {
  /** The values that the query uses, after defaults, fallbacks and the token's maximum tier; null: the parameter has no value. */
  readonly parameters: Readonly<Record<string, string | null>>;
  /** The time window that the query reads, ISO 8601; null: no bound. */
  readonly window: { readonly start: string | null; readonly end: string | null };
  /** The time of the newest record of the project, inside or outside the window, ISO 8601; null: there is none. */
  readonly newest: string | null;
  readonly oldest: string | null;
  readonly conditions: readonly { readonly name: string; readonly remaining: number }[];
  /** One sentence. */
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
}

export interface CatalogColumn {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  /** False: a value is never null. */
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
}

/** The headers of a 304 describe the result at its time; the rows are those of the response before. */
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

/** Reads the header Cache-Status (RFC 9211). */
function readCacheOutcome(status: string): CacheOutcome | undefined {
  const own = /(?:^|,)\s*dendro;([^,]*)/.exec(status)?.[1] ?? '';
  if (/(^|;)\s*hit\b/.test(own)) return 'hit';
  if (/;\s*collapsed\b/.test(own)) return 'collapsed';
  return /\bfwd=(miss|request|bypass)\b/.exec(own)?.[1] as CacheOutcome | undefined;
}
