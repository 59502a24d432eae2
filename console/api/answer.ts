// An answer of the API, and what its headers say about its age and completeness.
import { parseExactJson } from './exact-json.ts';

export type Row = Readonly<Record<string, unknown>>;

export interface Answer {
  readonly rows: readonly Row[];
  /** The moment that the query took as now, by the server's clock, in milliseconds. */
  readonly askedAt: number;
  /** The same moment by this machine's clock, whose distance to now is the answer's age. */
  readonly askedAtHere: number;
  /** The newest record of the log kind, in milliseconds; undefined where there is none. */
  readonly dataThrough: number | undefined;
  /** `row-limit`, `retention` or both. */
  readonly clipped: readonly string[];
}

export async function readAnswer(response: Response): Promise<Answer> {
  const arrivedAt = Date.now();
  const age = Number(response.headers.get('Age') ?? 0) * 1000;
  const serverTime = Date.parse(response.headers.get('Date') ?? '');
  const through = Date.parse(response.headers.get('Dendro-Data-Through') ?? '');
  const body = parseExactJson(await response.text()) as { result: Row[] };
  if (!Array.isArray(body.result)) throw new Error('there is no result');
  return {
    rows: body.result,
    askedAt: (Number.isNaN(serverTime) ? arrivedAt : serverTime) - age,
    askedAtHere: arrivedAt - age,
    dataThrough: Number.isNaN(through) ? undefined : through,
    clipped: (response.headers.get('Dendro-Clipped') ?? '').split(/,\s*/).filter(note => note !== ''),
  };
}

export function ageSeconds({ askedAtHere }: Answer): number {
  return Math.max(0, (Date.now() - askedAtHere) / 1000);
}
