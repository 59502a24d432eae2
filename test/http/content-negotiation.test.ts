import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, micros } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const CALL = '/api/endpoints/query/logs.all?project=alpha';
const JSON_TYPE = 'application/json; charset=utf-8';
const NDJSON_TYPE = 'application/x-ndjson; charset=utf-8';
const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

describe('the format of a result', () => {
  const app = useApp();
  beforeAll(async () => {
    await app.append('edge', [
      edgeRecord({ id: 'plain', at: '2026-11-14T12:00:03Z', message: 'nothing special' }),
      edgeRecord({
        id: 'a,b',
        at: '2026-11-14T12:00:02Z',
        message: 'say "hi"',
        metadata: { a: 'x,"y"', n: 1.5 },
      }),
      edgeRecord({
        id: ' spaced ',
        at: '2026-11-14T12:00:01Z',
        message: 'two\r\nlines\nand \u00e9\u{1f332}',
      }),
    ]);
    await app.append('function_edge', [
      functionEdgeRecord({ at: '2026-11-14T12:00:00Z', project: 'timeless', ms: null, status: null }),
    ]);
  });

  const at = (second: number) => micros(`2026-11-14T12:00:0${second}Z`);
  const send = (path: string, accept?: string) =>
    app.get(path, { headers: { 'X-API-KEY': API_KEY, ...(accept === undefined ? {} : { Accept: accept }) } });

  test('CSV has a header line, CRLF and quotes as RFC 4180 requires', async () => {
    const { headers, text } = await send(`${CALL}&format=csv`);
    expect(headers.get('content-type')).toBe(CSV_TYPE);
    expect(text).toBe(
      'id,timestamp,event_message,metadata\r\n' +
        `plain,${at(3)},nothing special,{}\r\n` +
        `"a,b",${at(2)},"say ""hi""","{""a"":""x,\\""y\\"""",""n"":1.5}"\r\n` +
        ` spaced ,${at(1)},"two\r\nlines\nand \u00e9\u{1f332}",{}\r\n`,
    );
  });

  test('CSV puts a single quote before texts that a spreadsheet runs as formulas; csv-raw does not', async () => {
    const texts = ['=1+1', '+1', '-1', '@sum', '\ttab', '\rreturn', 'a=b', "'quoted"];
    await app.append(
      'edge',
      texts.map((message, index) =>
        edgeRecord({ id: `=${index}`, at: `2026-11-14T12:00:0${9 - index}Z`, project: 'formulas', message }),
      ),
    );
    const messagesOf = async (format: string) => {
      const { status, headers, text } = await send(
        `/api/endpoints/query/logs.all?project=formulas&format=${format}`,
      );
      expect([status, headers.get('content-type')]).toEqual([200, CSV_TYPE]);
      const [, ...lines] = text.split('\r\n').slice(0, -1);
      return lines.map(line => {
        const [, id, message] = /^('?=\d),\d+,(.*),\{\}$/s.exec(line) ?? [];
        return `${id} ${message}`;
      });
    };
    const quoted = (text: string) => (text.includes('\r') ? `"${text}"` : text);
    expect(await messagesOf('csv-raw')).toEqual(texts.map((text, index) => `=${index} ${quoted(text)}`));
    const isFormula = (text: string) => !['a=b', "'quoted"].includes(text);
    expect(await messagesOf('csv')).toEqual(
      texts.map((text, index) => `'=${index} ${quoted(isFormula(text) ? `'${text}` : text)}`),
    );
  });

  test('NDJSON has one object per line, each with a line end', async () => {
    const { headers, text } = await send(`${CALL}&format=ndjson`);
    expect(headers.get('content-type')).toBe(NDJSON_TYPE);
    expect(text).toBe(
      `{"id":"plain","timestamp":${at(3)},"event_message":"nothing special","metadata":{}}\n` +
        `{"id":"a,b","timestamp":${at(2)},"event_message":"say \\"hi\\"","metadata":{"a":"x,\\"y\\"","n":1.5}}\n` +
        `{"id":" spaced ","timestamp":${at(1)},"event_message":"two\\r\\nlines\\nand \u00e9\u{1f332}","metadata":{}}\n`,
    );
  });

  test.each([
    ['json', '{"result":[]}'],
    ['ndjson', ''],
    ['csv', 'id,timestamp,event_message,metadata\r\n'],
  ])('an empty result as %s', async (format, expected) => {
    const { status, text, headers } = await send(
      `/api/endpoints/query/logs.all?project=nobody&format=${format}`,
    );
    expect(status).toBe(200);
    expect(text).toBe(expected);
    expect(headers.get('content-length')).toBe(String(expected.length));
  });

  test('a null value is empty in CSV and null in NDJSON, and a datetime is the same in both', async () => {
    const call = '/api/endpoints/query/functions.invocation-stats?project=timeless';
    expect((await send(`${call}&format=csv`)).text.split('\r\n')[1]).toBe(`${at(0)},,,,,,1,0`);
    expect((await send(`${call}&format=ndjson`)).text).toBe(
      `{"timestamp":${at(0)},"min_execution_time":null,"max_execution_time":null,"avg_execution_time":null,` +
        '"p95_execution_time":null,"p99_execution_time":null,"count":1,"error_count":0}\n',
    );
    const counts = '/api/endpoints/query/usage.api-counts?project=alpha&interval=daily';
    expect((await send(`${counts}&format=csv`)).text).toBe(
      'timestamp,total_rest_requests,total_storage_requests,total_auth_requests,total_realtime_requests\r\n' +
        '2026-11-14T00:00:00Z,3,0,0,0\r\n',
    );
    expect((await send(counts)).rows[0]?.['timestamp']).toBe('2026-11-14T00:00:00Z');
  });

  test.each([
    [undefined, JSON_TYPE],
    ['', JSON_TYPE],
    ['*/*', JSON_TYPE],
    ['application/json', JSON_TYPE],
    ['APPLICATION/JSON', JSON_TYPE],
    ['application/*', JSON_TYPE],
    ['application/json; charset=utf-8', JSON_TYPE],
    ['text/csv', CSV_TYPE],
    ['text/*', CSV_TYPE],
    ['application/x-ndjson', NDJSON_TYPE],
    ['text/csv, application/json', JSON_TYPE],
    ['text/csv, application/json;q=0.9', CSV_TYPE],
    ['text/csv;q=0.1, application/json;q=0.2, application/x-ndjson;q=0.3', NDJSON_TYPE],
    ['text/html, */*;q=0.1', JSON_TYPE],
    ['application/json;q=0, */*', NDJSON_TYPE],
    ['application/*;q=0, text/csv;q=0.001', CSV_TYPE],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8', JSON_TYPE],
  ])('Accept: %s returns %s', async (accept, type) => {
    const { status, headers } = await send(CALL, accept);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe(type);
  });

  test.each(['text/html', 'application/xml', 'image/*', '*/*;q=0', 'application/json;q=0', 'json', ';,;'])(
    'Accept: %s is 406 and the message lists the available formats',
    async accept => {
      const { status, headers, error } = await send(CALL, accept);
      expect(status).toBe(406);
      expect(headers.get('content-type')).toBe(JSON_TYPE);
      expect(error.code).toBe('not_acceptable');
      expect(error.message).toContain('application/json, application/x-ndjson, text/csv');
    },
  );

  test('the parameter format takes precedence over Accept unless it is empty, and an error is JSON in any case', async () => {
    expect((await send(`${CALL}&format=csv`, 'application/json')).headers.get('content-type')).toBe(CSV_TYPE);
    const json = await send(`${CALL}&format=json`, 'text/html');
    expect(json.headers.get('content-type')).toBe(JSON_TYPE);
    expect(json.rows.map(row => row['id'])).toEqual(['plain', 'a,b', ' spaced ']);
    expect((await send(`${CALL}&format=`, 'text/csv')).headers.get('content-type')).toBe(CSV_TYPE);
    const failed = await send('/api/endpoints/query/logs.all?format=csv', 'text/csv');
    expect([failed.status, failed.headers.get('content-type')]).toEqual([400, JSON_TYPE]);
  });

  test.each(['format=xml', 'format=CSV', 'format=csv&format=csv', 'format=json%20'])(
    '%s is 400 and the message lists the formats',
    async query => {
      const { status, error } = await send(`${CALL}&${query}`);
      expect(status).toBe(400);
      expect(error).toMatchObject({ code: 'invalid_parameter', param: 'format' });
      expect(error.message).toContain('json, ndjson, csv');
    },
  );
});
