// Which format an answer takes: the parameter `format`, else the header Accept, else JSON.
import { ANSWER_FORMATS, type AnswerFormat } from '../endpoint/encode.ts';
import { DendroError } from '../errors.ts';

export const CONTENT_TYPES: Readonly<Record<AnswerFormat, string>> = {
  json: 'application/json; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
};

export function chooseFormat(parameters: URLSearchParams, accept: string | undefined): AnswerFormat {
  const asked = parameters.getAll('format');
  if (asked.length === 0 || asked[0] === '') return acceptable(accept);
  const format = ANSWER_FORMATS.find(name => name === asked[0]);
  if (format === undefined || asked.length > 1)
    throw new DendroError(
      'invalid_parameter',
      `format must be one of ${ANSWER_FORMATS.join(', ')}, given once`,
      {
        param: 'format',
      },
    );
  return format;
}

/** The format that the caller likes best; among equals the first offered, JSON. */
function acceptable(accept: string | undefined): AnswerFormat {
  if (accept === undefined || accept.trim() === '' || accept === '*/*') return 'json';
  const ranges = accept.split(',').map(parseRange);
  let best: { format: AnswerFormat; quality: number } | undefined;
  for (const format of ANSWER_FORMATS) {
    const quality = qualityOf(mediaTypeOf(format), ranges);
    if (quality > (best?.quality ?? 0)) best = { format, quality };
  }
  if (best === undefined)
    throw new DendroError(
      'not_acceptable',
      `no format fits Accept; offered are ${ANSWER_FORMATS.map(mediaTypeOf).join(', ')}`,
    );
  return best.format;
}

function mediaTypeOf(format: AnswerFormat): string {
  return CONTENT_TYPES[format].split(';')[0] ?? '';
}

interface MediaRange {
  readonly type: string;
  readonly quality: number;
}

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase());
  const quality = parameters.find(parameter => parameter.startsWith('q='))?.slice(2);
  const number = quality === undefined ? 1 : Number(quality);
  return { type, quality: number >= 0 && number <= 1 ? number : 0 };
}

/** The most specific range that covers a type decides (RFC 9110, section 12.5.1). */
function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  for (const candidate of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find(({ type: name }) => name === candidate);
    if (range !== undefined) return range.quality;
  }
  return 0;
}
