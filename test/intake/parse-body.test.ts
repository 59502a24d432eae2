import { expect, test } from 'vitest';
import { decodeText } from '../../src/intake/decode-body.ts';
import { parseBody } from '../../src/intake/parse-body.ts';
import { formatQuarantineLine, isLineOfProject } from '../../src/logs/quarantine-line.ts';
import { attribute, encodeOtlp, type OtlpObject, otlpRequest, text } from '../support/otlp.ts';

function parseOtlp(request: OtlpObject, projects?: readonly string[]) {
  return parseBody({
    data: encodeOtlp(request),
    contentCoding: '',
    format: 'otlp-protobuf',
    kind: { sourceName: undefined, allowedKinds: ['edge', 'auth'] },
    context: { nowMicros: 1_794_648_600_123_456, retentionDays: 90, projects },
    needsDeduplication: true,
  });
}

const REASON = { code: 'past_retention', message: 'The timestamp is too old.' } as const;

// In a line, a control character takes six bytes in each text column and in the metadata. In protobuf it takes one.
const CONTROL_CHARACTERS = '\u0001'.repeat(174_000);

test('a few records whose lines are far larger than the body are refused', () => {
  const url = attribute('url', text(CONTROL_CHARACTERS));
  const attributes = [attribute('request', { kvlistValue: { values: [url] } })];
  const records = Array.from({ length: 40 }, () => ({ attributes }));
  expect(() => parseOtlp(otlpRequest({ 'service.name': 'edge', project: 'p' }, records))).toThrow(
    'larger than 80 MiB; send smaller batches',
  );
});

test('a rejected record without a project belongs to the project of the token in the quarantine', () => {
  const timeUnixNano = String((1_794_648_600_123_456n + 9_000_000_000n) * 1000n);
  const request = otlpRequest({ 'service.name': 'edge' }, [{ timeUnixNano, body: text('early') }]);
  const { batches } = parseOtlp(request, ['shop']);
  expect(batches).toMatchObject([{ rejectedByCode: { in_the_future: 1 } }]);
  expect(isLineOfProject(batches[0]?.quarantineLines.trimEnd() ?? '', 'shop')).toBe(true);
});

test('a quarantined record with another name of the timestamp is erased by that time', () => {
  const record = { project: 'shop', time: '2026-11-14T09:00:00Z', msg: 'early' };
  const line = formatQuarantineLine('edge', 1_794_648_600_123_456, { index: 0, value: record }, REASON);
  expect(isLineOfProject(line, 'shop', 1_794_646_800_000_000n)).toBe(false);
  expect(isLineOfProject(line, 'shop', 1_794_646_800_000_001n)).toBe(true);
});

test('the 20 reported errors have the first of each message, in the order of the body', () => {
  const requests = ['a', 'b'].map(name =>
    otlpRequest({ 'service.name': name }, Array(30).fill({ body: text('m') })),
  );
  const { batches } = parseOtlp({ resourceLogs: requests.flatMap(({ resourceLogs }) => resourceLogs) });
  const indexes = batches[0]?.errors.map(({ index }) => index);
  expect(indexes).toEqual([...Array(19).keys(), 30]);
});

test('of a rejected record that is much longer as JSON, the quarantine has only the reason', () => {
  const attributes = [attribute('a', text('\u0001'.repeat(6 * 1024 * 1024)))];
  const { batches } = parseOtlp(otlpRequest({ 'service.name': 'edge', project: 'p' }, [{ attributes }]));
  expect(batches).toMatchObject([{ kind: 'edge', accepted: 0, rejectedByCode: { too_large: 1 } }]);
  expect(batches[0]?.quarantineLines).toMatch(/"code":"too_large".*"record":null\}\n$/);
});

test.each([
  ['commas in a JSON body', 'json', ',', 4 * 1024 * 1024],
  ['lines in an NDJSON body', 'ndjson', '\n', 1024 * 1024],
] as const)('the number of %s is limited', (_, format, character, max) => {
  const decode = (count: number) => decodeText(Buffer.from(character.repeat(count)), format);
  expect(decode(max)).toHaveLength(max);
  expect(() => decode(max + 1)).toThrow('too many values');
});
