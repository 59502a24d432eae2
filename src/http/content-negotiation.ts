// Content negotiation (RFC 9110, section 12): the format of a result (parameter `format`, then the header Accept, then JSON), the
// form of its timestamps (parameter `timestamps`) and its compression (the header Accept-Encoding).
import { DendroError } from '../domain/errors.ts';
import { RESULT_FORMATS, type ResultFormat } from '../endpoint/encode-rows.ts';
import { COMPRESSIONS, type ContentCoding } from '../endpoint/endpoint-result.ts';
import { mediaTypeOf } from './request-body.ts';
import { JSON_TYPE } from './response.ts';

export const CONTENT_TYPES: Readonly<Record<ResultFormat, string>> = {
  json: JSON_TYPE,
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
  'csv-raw': 'text/csv; charset=utf-8; header=present',
};

const MEDIA_TYPES = RESULT_FORMATS.map(format => ({ format, mediaType: mediaTypeOf(CONTENT_TYPES[format]) }));

/** An empty value counts as absent. */
export function chooseFormat(parameters: URLSearchParams, accept: string | undefined): ResultFormat {
  const values = parameters.getAll('format');
  if (values.every(value => value === '') && values.length < 2) return chooseByAccept(accept);
  const format = RESULT_FORMATS.find(name => name === values[0]);
  if (format === undefined || values.length > 1)
    throw new DendroError(
      'invalid_parameter',
      `format must be one of ${RESULT_FORMATS.join(', ')}, given once`,
      { param: 'format' },
    );
  return format;
}

/**
 * Chooses the format with the highest weight, and among equal weights the first of RESULT_FORMATS. So only the parameter `format`
 * can select csv-raw, which has the same media type as csv.
 */
function chooseByAccept(accept: string | undefined): ResultFormat {
  if (accept === undefined || accept.trim() === '' || accept === '*/*') return 'json';
  const weights = parseWeights(accept);
  let best: { format: ResultFormat; weight: number } | undefined;
  for (const { format, mediaType } of MEDIA_TYPES) {
    const weight = mediaTypeWeight(mediaType, weights);
    if (weight > (best?.weight ?? 0)) best = { format, weight };
  }
  if (best !== undefined) return best.format;
  const offered = [...new Set(MEDIA_TYPES.map(({ mediaType }) => mediaType))].join(', ');
  throw new DendroError('not_acceptable', `Accept matches no available format; available: ${offered}`);
}

/** The weight of the most specific media range that matches the type (RFC 9110, section 12.5.1). */
function mediaTypeWeight(type: string, weights: ReadonlyMap<string, number>): number {
  const typeRange = `${type.slice(0, type.indexOf('/'))}/*`; // such as text/*
  return weights.get(type) ?? weights.get(typeRange) ?? weights.get('*/*') ?? 0;
}

/**
 * Chooses the coding with the highest weight (RFC 9110, section 12.5.3), and among equal weights the first of identity, br and
 * gzip. If the header does not name identity, identity has weight 0.
 */
export function chooseCoding(acceptEncoding: string | undefined): ContentCoding {
  if (acceptEncoding === undefined || acceptEncoding === '') return 'identity';
  const weights = parseWeights(acceptEncoding);
  const identityWeight = weights.get('identity') ?? 0;
  let best: { coding: ContentCoding; weight: number } = { coding: 'identity', weight: identityWeight };
  for (const coding of COMPRESSIONS) {
    const weight = weights.get(coding) ?? weights.get('*') ?? 0;
    if (weight > best.weight) best = { coding, weight };
  }
  return best.coding;
}

/** Parses `text/csv, application/json;q=0.5`: names in lower case with weights from 0 to 1. Other parameters are ignored. */
function parseWeights(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map(part => part.trim());
    if (name !== '' && !weights.has(name)) weights.set(name, parseWeight(parameters));
  }
  return weights;
}

function parseWeight(parameters: readonly string[]): number {
  const text = parameters.find(parameter => parameter.startsWith('q='))?.slice(2);
  const weight = text === undefined ? 1 : Number(text);
  return weight >= 0 && weight <= 1 ? weight : 0;
}
