// Which format an answer takes: the parameter `format`, else the header Accept, else JSON.

import { DendroError } from '../domain/errors.ts';
import { RESULT_FORMATS, type ResultFormat } from '../endpoint/encode-rows.ts';
import type { HttpRequest } from './router.ts';
import { parseWeighted } from './weighted-list.ts';

export const CONTENT_TYPES: Readonly<Record<ResultFormat, string>> = {
  json: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

const MEDIA_TYPES: Readonly<Record<ResultFormat, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
};

/** Where neither stands in a query, none of its parameters is named `format`, not even as %66ormat. */
const MAY_NAME_FORMAT = /format|%[67]/;

export function chooseFormat(
  call: Pick<HttpRequest, 'query' | 'parameters'>,
  accept: string | undefined,
): ResultFormat {
  if (!MAY_NAME_FORMAT.test(call.query)) return acceptable(accept);
  const asked = call.parameters.getAll('format');
  if (asked.length === 0 || (asked.length === 1 && asked[0] === '')) return acceptable(accept);
  const format = RESULT_FORMATS.find(name => name === asked[0]);
  if (format === undefined || asked.length > 1)
    throw new DendroError(
      'invalid_parameter',
      `format must be one of ${RESULT_FORMATS.join(', ')}, given once`,
      {
        param: 'format',
      },
    );
  return format;
}

/** The format that the caller likes best; among equals the first offered, JSON. */
function acceptable(accept: string | undefined): ResultFormat {
  if (accept === undefined || accept.trim() === '' || accept === '*/*') return 'json';
  const weights = parseWeighted(accept);
  let best: { format: ResultFormat; weight: number } | undefined;
  for (const format of RESULT_FORMATS) {
    const weight = weightOf(MEDIA_TYPES[format], weights);
    if (weight > (best?.weight ?? 0)) best = { format, weight };
  }
  if (best !== undefined) return best.format;
  const offered = Object.values(MEDIA_TYPES).join(', ');
  throw new DendroError('not_acceptable', `no format fits Accept; offered are ${offered}`);
}

/** The most specific range that covers a type decides (RFC 9110, section 12.5.1). */
function weightOf(type: string, weights: ReadonlyMap<string, number>): number {
  const family = `${type.slice(0, type.indexOf('/'))}/*`;
  return weights.get(type) ?? weights.get(family) ?? weights.get('*/*') ?? 0;
}
