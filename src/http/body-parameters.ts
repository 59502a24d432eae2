// The parameters of a POST request: those of its URL and those of its body, a JSON object or a form. A token is never read from
// the body.
import { isUtf8 } from 'node:buffer';
import { DendroError } from '../domain/errors.ts';
import { MAX_PARAMETER_BODY_BYTES } from '../domain/limits.ts';
import { exactNumberText, parseExactJson } from '../logs/exact-json.ts';
import { isJsonObject } from '../system/parse-json.ts';
import { mediaTypeOf, readSmallBody, type UploadRate } from './request-body.ts';
import type { HttpRequest } from './router.ts';

const EXAMPLE = '{"project":"abc"}';
/** Of a name that the client sent. */
const MAX_SHOWN_LENGTH = 64;

const READERS: ReadonlyMap<string, (text: string) => Iterable<[name: string, value: string]>> = new Map([
  ['application/json', readJson],
  ['application/x-www-form-urlencoded', (text: string) => new URLSearchParams(text)],
]);

/** An empty body has no parameters. Throws if the URL and the body have the same name. */
export async function readBodyParameters(
  { raw, parameters }: HttpRequest,
  uploadRate: UploadRate,
): Promise<URLSearchParams> {
  const body = await readSmallBody(raw, { maxBytes: MAX_PARAMETER_BODY_BYTES, uploadRate });
  if (body.length === 0) return parameters;
  const { 'content-type': contentType = '', 'content-encoding': coding = 'identity' } = raw.headers;
  const read = READERS.get(mediaTypeOf(contentType));
  if (read === undefined) throw unsupportedType();
  if (coding.trim().toLowerCase() !== 'identity')
    throw new DendroError(
      'unsupported_media_type',
      'a compressed body is not supported; omit Content-Encoding',
    );
  if (!isUtf8(body)) throw new DendroError('invalid_body', 'the body is not valid UTF-8');
  const inUrl = new Set(parameters.keys());
  for (const [name, value] of read(body.toString())) {
    if (inUrl.has(name)) throw invalid(name, 'is given in the URL and in the body; give it once');
    parameters.append(name, value);
  }
  return parameters;
}

/** The text of a number is its shortest form (1e3 is 1000), unless that would be another number. */
function* readJson(text: string): Iterable<[string, string]> {
  let object: unknown;
  try {
    object = parseExactJson(text);
  } catch {} // not JSON
  if (!isJsonObject(object))
    throw new DendroError('invalid_body', `the body is not a JSON object such as ${EXAMPLE}`);
  for (const [name, value] of Object.entries(object)) {
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw invalid(name, 'must be a string, a number or a boolean; omit it if it has no value');
    yield [name, exactNumberText(value) ?? String(value)];
  }
}

function invalid(name: string, problem: string): DendroError {
  const param = [...name].slice(0, MAX_SHOWN_LENGTH).join('');
  return new DendroError('invalid_parameter', `${param} ${problem}`, { param });
}

function unsupportedType(): DendroError {
  return new DendroError(
    'unsupported_media_type',
    `the Content-Type of the body is not supported; supported: ${[...READERS.keys()].join(', ')}`,
  );
}
