import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redactRow, redactText } from '../../src/endpoint/redact.ts';
import type { Cell, Column } from '../../src/store/store.ts';

const JSON_COLUMN: readonly Column[] = [{ name: 'metadata', type: 'json' }];

/** Redacts a JSON text as a cell of a row. */
function redactJson(json: string): string {
  const [cell] = redactRow(JSON_COLUMN, [json]);
  return String(cell);
}

/** Unusual ones; the tests with random addresses have the forms of RFC 4291 and RFC 5952. */
const ADDRESSES = ['0.0.0.0', '192.168.001.010', '1:2:3:4:5:6:7::', '::2:3:4:5:6:7:8', '::ffff:0:10.0.0.1'];

describe('redaction of text', () => {
  test.each(ADDRESSES)('replaces %s', address => {
    expect(redactText(address)).toBe('REDACTED');
    expect(redactText(`from ${address} to ${address}.`)).toBe('from REDACTED to REDACTED.');
    expect(redactText(`[${address}]:443`)).toBe('[REDACTED]:443');
  });

  test.each([
    ['10.0.0.1:8080', 'REDACTED:8080'],
    ['::ffff:10.0.0.1%eth0', 'REDACTED%eth0'],
    ['https://[2001:db8::1]:8443/rest', 'https://[REDACTED]:8443/rest'],
    ['https://user@10.0.0.1/rest?ip=10.0.0.2&x=1', 'https://user@REDACTED/rest?ip=REDACTED&x=1'],
    ['10.0.0.1-10.0.0.9', 'REDACTED-REDACTED'],
    ['client=10.0.0.1;proto=http', 'client=REDACTED;proto=http'],
    ['for="[2001:db8::1]:4711"', 'for="[REDACTED]:4711"'],
    ['2001:db8::1: connection refused', 'REDACTED: connection refused'],
    ['2001:db8:0:0:0:0:0:1:8080', 'REDACTED:8080'],
    ['ip_10.0.0.1_x', 'ip_REDACTED_x'],
    ['v10.0.0.1', 'vREDACTED'],
    ['4.3.2.1.in-addr.arpa', 'REDACTED.in-addr.arpa'],
    ['IP 10.20.30.40.443 > 10.20.30.41.50123: Flags [S]', 'IP REDACTED.443 > REDACTED.50123: Flags [S]'],
    ['7.10.20.30.40', 'REDACTED'],
    ['300.10.20.30.40.7', '300.REDACTED'],
    ['line\n10.0.0.1\tand\r\nfe80::1\n', 'line\nREDACTED\tand\r\nREDACTED\n'],
    ['é10.0.0.1ü, 中2001:db8::1文', 'éREDACTEDü, 中REDACTED文'],
  ])('%j becomes %j', (text, expected) => {
    expect(redactText(text)).toBe(expected);
  });

  // Log lines quote other texts, such as JSON within JSON and URLs within URLs. There the character before an address may
  // belong to an escape instead of a word or a number.
  test.each([
    ['/x?for=10.0.0.1%2C%2010.0.0.2', '/x?for=REDACTED%2C%20REDACTED'],
    [String.raw`{"msg":"line\nfe80::1\tup"}`, String.raw`{"msg":"line\nREDACTED\tup"}`],
    [String.raw`for=\x2210.20.30.40\x22`, String.raw`for=\x22REDACTED\x22`],
    [String.raw`from\04010.20.30.40`, String.raw`from\04REDACTED`],
    [String.raw`from\0402001:db8::1`, String.raw`from\040REDACTED`],
    [String.raw`{\"msg\":\"\\x2210.20.30.40\"}`, String.raw`{\"msg\":\"\\x22REDACTED\"}`],
    ['/x?q=%5Cnfe80::1', '/x?q=%5CnREDACTED'],
  ])('directly after an escape of a quoted text: %j becomes %j', (text, expected) => {
    expect(redactText(text)).toBe(expected);
  });

  test.each([
    ['a time', '12:34:56'],
    ['a timestamp', '2026-11-14T12:34:56.789Z'],
    ['a time with an offset', '2026-11-14 12:34:56+02:00'],
    ['a version of three parts', '1.2.3'],
    ['parts above 255', '256.1.1.1 and 1.1.1.999'],
    ['a decimal number', '1234.5678'],
    ['a C++ name', 'std::string::npos'],
    ['a Ruby name', 'ActiveRecord::Base.find'],
    ['a MAC address, which has six groups', '00:1b:44:11:3a:b7'],
    ['a UUID', '36d4086c-7022-4186-9a0f-e33ec7d730da'],
    ['a hexadecimal id', 'deadbeefcafe0123456789abcdef'],
    ['a ratio', '16:9'],
    ['a URN', 'urn:isbn:0451450523'],
    ['a port without an address', ':8080'],
    ['two colons without groups', '::'],
    ['groups of five digits', '20010:db80::10000'],
    ['an empty text', ''],
  ])('%s is not replaced', (_, text) => {
    expect(redactText(text)).toBe(text);
  });

  // Text that looks like an address is replaced: hiding too much is better than too little.
  test.each([
    ['a version of four parts', '1.2.3.4'],
    ['an object identifier', '1.3.6.1.4.1'],
    ['an EUI-64 of eight groups', '00:1b:44:ff:fe:11:3a:b7'],
    ['hexadecimal words around a gap', 'dead::beef'],
  ])('%s is replaced', (_, text) => {
    expect(redactText(text)).toBe('REDACTED');
  });
});

describe('redaction of JSON', () => {
  test('replaces addresses in strings at every depth and in keys', () => {
    const json = '{"ip":"10.0.0.1","list":["::1",{"deep":{"2001:db8::1":"x 10.0.0.2 y"}}]}';
    expect(redactJson(json)).toBe(
      '{"ip":"REDACTED","list":["REDACTED",{"deep":{"REDACTED":"x REDACTED y"}}]}',
    );
  });

  test.each([
    [String.raw`{"a":"\n10.0.0.1\n"}`, { a: '\nREDACTED\n' }],
    [String.raw`{"a":"\tfe80::1"}`, { a: '\tREDACTED' }],
    [String.raw`{"a":"\\fe80::1"}`, { a: '\\REDACTED' }],
    [String.raw`{"a":"\"10.0.0.1\""}`, { a: '"REDACTED"' }],
    [String.raw`{"a":"10\u002e0\u002e0\u002e1"}`, { a: 'REDACTED' }],
    [String.raw`{"a":"2001\u003adb8::1"}`, { a: 'REDACTED' }],
    [String.raw`{"a":"\u0031\u0030.0.0.1"}`, { a: 'REDACTED' }],
    [String.raw`{"\u0031\u0030.0.0.1":"\\"}`, { REDACTED: '\\' }],
    [String.raw`{"a":"\\","b":"10.0.0.1"}`, { a: '\\', b: 'REDACTED' }],
    [String.raw`{"a":"\\\"10.0.0.1"}`, { a: '\\"REDACTED' }],
  ])('replaces addresses next to or within escapes: %s', (json, expected) => {
    expect(JSON.parse(redactJson(json))).toEqual(expected);
  });

  test.each([
    '{"n":1.2,"list":[1,2,3,4],"big":12345678901234567890123,"small":1e-400,"one":1.0}',
    String.raw`{"t":"12:34:56","e":"\u00e9 \/ \"quoted\"","x":null,"y":true}`,
    String.raw`{"lone":"\ud800"}`,
    '{}',
    '[]',
    '"text"',
    '17',
  ])('%s stays unchanged', json => {
    expect(redactJson(json)).toBe(json);
  });
});

describe('redaction of rows', () => {
  test('changes text and json columns only', () => {
    const columns: Column[] = [
      { name: 'a', type: 'text' },
      { name: 'b', type: 'json' },
      { name: 'c', type: 'integer' },
      { name: 'd', type: 'number' },
      { name: 'e', type: 'unix_microseconds' },
      { name: 'f', type: 'utc_datetime' },
      { name: 'g', type: 'text' },
    ];
    const row: Cell[] = ['10.0.0.1', '{"a":"::1"}', 1, 1.5, 2n, 3n, null];
    expect(redactRow(columns, row)).toEqual(['REDACTED', '{"a":"REDACTED"}', 1, 1.5, 2n, 3n, null]);
    expect(row[0]).toBe('10.0.0.1'); // the original row is served to other tokens
  });
});

describe('random addresses', () => {
  const ipV4 = fc.ipV4();
  const ipV6 = fc.ipV6().filter(address => address !== '::'); // not the address of a host
  const address = fc.oneof(
    ipV4,
    ipV6,
    ipV6.map(text => text.toUpperCase()),
  );
  const before = fc.constantFrom(...'| |\n|"|[|(|=|/|,|<|@|é|\\|ip=|{"a":"'.split('|'));
  const after = fc.constantFrom(...'| |\n|"|]|)|&|/24|,|>|. |: |]:80|%eth0|"}'.split('|'));

  test('are replaced in text, with any characters around them', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(before, address, after), { minLength: 1, maxLength: 4 }), parts => {
        const text = parts.map(([left, ip, right]) => `${left}${ip}${right} `).join('');
        const expected = parts.map(([left, , right]) => `${left}REDACTED${right} `).join('');
        expect(redactText(text)).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  test('are not left readable by an escape or a number before them', () => {
    const escapes = fc.constantFrom(
      ...String.raw`%20 %2520 %252520 %u0020 \n \t \x20 \x22 \0 \40 \040 \u0020 \U00000020 \\x20 %5Cx20 %255Cn`.split(
        ' ',
      ),
    );
    const inText = fc.tuple(fc.constantFrom('', 'from', 'q=', '7'), escapes, address);
    const inRun = fc.tuple(fc.constantFrom('7.', '300.', '7.7.7.', '1234.', 'v1.'), fc.constant(''), ipV4);
    fc.assert(
      fc.property(fc.oneof(inText, inRun), fc.constantFrom('', '"', '%20', '.443', ' x'), (parts, after) => {
        const [, , ip] = parts;
        fc.pre(!(after === '.443' && ip.includes(':')));
        const redacted = redactText(parts.join('') + after);
        expect(redacted).toContain('REDACTED');
        expect(redacted.endsWith(`REDACTED${after}`)).toBe(true);
      }),
      { numRuns: 5_000 },
    );
  });

  test('are replaced in JSON keys and values, escaped or not', () => {
    const escapeAll = (text: string) =>
      [...text].map(c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
    fc.assert(
      fc.property(address, fc.boolean(), fc.jsonValue(), (ip, escaped, other) => {
        const written = escaped ? `"${escapeAll(ip)}"` : JSON.stringify(ip);
        const redacted = redactJson(`{${written}:[${written},${JSON.stringify(other)}]}`);
        const [[key, [value]]] = Object.entries(JSON.parse(redacted)) as [[string, [unknown]]];
        expect([key, value]).toEqual(['REDACTED', 'REDACTED']);
      }),
      { numRuns: 2_000 },
    );
  });

  test('redacting a redacted text changes nothing', () => {
    const hostile = fc.string({ unit: fc.constantFrom(...'0129afF:.%[]x '), maxLength: 60 });
    fc.assert(
      fc.property(hostile, text => {
        const once = redactText(text);
        expect(redactText(once)).toBe(once);
      }),
      { numRuns: 20_000 },
    );
  });
});

// Linear time takes seconds here; quadratic time would take minutes and exceed the time limit of the test.
describe('hostile text is redacted in linear time', () => {
  const MEGABYTE = 1_000_000;
  test.each([
    '1:',
    '::',
    '::1',
    'f',
    '1.',
    '255.255.255.',
    '1:1:1:1:1:1:1:x',
    '1111:1111:1111:1111:1111:1111:1111:g',
    '2001:db8::1g ',
    '0',
    '%20',
    '%25',
    String.raw`\n`,
    String.raw`\040`,
    '1.1.1.999.',
  ])('a megabyte of %j', { timeout: 60_000 }, unit => {
    const text = unit.repeat(MEGABYTE / unit.length);
    redactText(text);
    expect(JSON.parse(redactJson(JSON.stringify({ text })))).toHaveProperty('text');
  });

  test('a megabyte of escapes, of quotes and of short strings', { timeout: 60_000 }, () => {
    for (const text of ['\n', '"', '\\', '\u0001'].map(c => c.repeat(MEGABYTE)))
      expect(JSON.parse(redactJson(JSON.stringify(text)))).toBe(text);
    const many = JSON.stringify(Array.from({ length: MEGABYTE / 5 }, () => '1'));
    expect(redactJson(many)).toBe(many);
  });
});
