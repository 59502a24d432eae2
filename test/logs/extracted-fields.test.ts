import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { accept } from './validate-record.ts';

const edge = (request: unknown) =>
  accept({ project: 'proj', message: 'm', metadata: { request } }, 'edge').extracted;

describe('extracted fields of an edge record', () => {
  test('url and path are those of metadata.request', () => {
    expect(edge({ url: 'https://h/a?b', path: '/sent', host: 'x' })).toStrictEqual({
      url: 'https://h/a?b',
      path: '/sent',
    });
  });

  test.each([
    ['https://h.example.co/rest/v1/items?select=/auth/v1#/x', '/rest/v1/items'],
    ['https://h:8443/a/b', '/a/b'],
    ['https://user:pw@h/a', '/a'],
    ['https://[2001:db8::1]/a', '/a'],
    ['https://h', ''],
    ['https://h?x=/rest/', ''],
    ['https://h#/rest/', ''],
    ['https://h/', '/'],
    ['//h/a', '/a'],
    ['/rest/v1?x', '/rest/v1'],
    ['?x', ''],
    ['https://h/a\nb', '/a\nb'],
    ['not a url', 'not a url'],
  ])('without metadata.request.path, the path of the URL %j is %j', (url, path) => {
    expect(edge({ url })).toStrictEqual({ url, path });
    expect(edge({ url, path: '' })).toStrictEqual({ url, path });
    expect(edge({ url, path: 7 })).toStrictEqual({ url, path });
  });

  test('without a URL, the URL is built from host and path', () => {
    expect(edge({ host: 'h', path: '/a' })).toStrictEqual({ url: 'https://h/a', path: '/a' });
    expect(edge({ url: '', host: 'h' })).toStrictEqual({ url: 'https://h', path: '' });
  });

  test('without URL and host, the URL is built from project and path', () => {
    expect(edge({ path: '/a' })).toStrictEqual({ url: 'https://proj/a', path: '/a' });
    expect(edge({ url: null, host: '', path: '/a' })).toStrictEqual({ url: 'https://proj/a', path: '/a' });
    expect(edge(undefined)).toStrictEqual({ url: 'https://proj', path: '' });
    expect(edge('text')).toStrictEqual({ url: 'https://proj', path: '' });
  });

  test('a number of any length is not used as URL', () => {
    expect(
      accept('{"project":"proj","metadata":{"request":{"url":12345678901234567890,"path":1}}}', 'edge')
        .extracted,
    ).toStrictEqual({ url: 'https://proj', path: '' });
  });

  test('a request in an array of one is read, and the metadata keeps the array', () => {
    const record = accept({ project: 'p', metadata: [{ request: [{ url: 'https://h/a' }] }] }, 'edge');
    expect(record.extracted).toStrictEqual({ url: 'https://h/a', path: '/a' });
    expect(record.metadata).toBe('{"request":[{"url":"https://h/a"}]}');
  });

  test('a URL of 1 MB takes linear time', () => {
    const start = performance.now();
    edge({ url: 'h'.repeat(1_000_000) });
    expect(performance.now() - start).toBeLessThan(10_000);
  });
});

describe('extracted fields of a function_edge record', () => {
  const extract = (metadata: string) =>
    accept(`{"project":"p","metadata":${metadata}}`, 'function_edge').extracted;

  test('function_id, execution_time_ms and status_code are those of the metadata', () => {
    expect(
      extract('{"function_id":"f","execution_time_ms":9.5,"response":{"status_code":200}}'),
    ).toStrictEqual({
      function_id: 'f',
      execution_time_ms: 9.5,
      status_code: 200,
    });
  });

  test('a missing field or a field of a wrong type is null', () => {
    const noFields = { function_id: null, execution_time_ms: null, status_code: null };
    expect(extract('{"a":1}')).toStrictEqual(noFields);
    expect(extract('{"function_id":null,"execution_time_ms":null,"response":null}')).toStrictEqual(noFields);
    expect(extract('{"function_id":{},"execution_time_ms":[1],"response":"200"}')).toStrictEqual(noFields);
    expect(
      extract('{"function_id":true,"execution_time_ms":true,"response":{"status_code":true}}'),
    ).toStrictEqual(noFields);
  });

  test.each([
    ['"f"', 'f'],
    ['""', ''],
    ['7', '7'],
    ['12345678901234567890', '12345678901234567890'],
  ])('the function id %s is stored as the string %j', (json, id) => {
    expect(extract(`{"function_id":${json}}`)).toMatchObject({ function_id: id });
  });

  test.each([
    ['0', 0],
    ['-1.5', -1.5],
    ['1e2', 100],
    ['"12"', 12],
    ['"12.5"', 12.5],
    ['"1e2"', 100],
    ['0.1000000000000000055511151231257827', 0.1],
    ['" 12 "', 12],
    ['1e18', 1e18],
    ['1000000000000000000001', 1e21],
    ['-1.7976931348623157e308', -1.7976931348623157e308],
    ['1e400', null],
    ['"1e400"', null],
    ['""', null],
    ['" "', null],
    ['"12ms"', null],
    ['"0x1f"', null],
    ['"NaN"', null],
    ['"Infinity"', null],
  ])('the execution time %s is stored as %j', (json, milliseconds) => {
    expect(extract(`{"execution_time_ms":${json}}`)).toMatchObject({ execution_time_ms: milliseconds });
  });

  test.each([
    ['200', 200],
    ['"404"', 404],
    ['-1', -1],
    ['2147483647', 2147483647],
    ['-2147483648', -2147483648],
    ['2147483648', 2147483647],
    ['-2147483649', -2147483648],
    ['"2147483648"', 2147483647],
    ['12345678901234567890', 2147483647],
    ['1e400', 2147483647],
    ['-1e400', -2147483648],
    ['399.9', 399],
    ['-0.5', -1],
    ['-0.0', 0],
    ['"200.0"', 200],
    ['"2e2"', 200],
    ['" 404 "', 404],
    ['""', null],
    ['" "', null],
    ['"404 Not Found"', null],
    ['"0x190"', null],
    ['"Infinity"', null],
  ])('the status code %s is stored as %j', (json, code) => {
    expect(extract(`{"response":{"status_code":${json}}}`)).toMatchObject({ status_code: code });
    expect(extract(`{"response":[{"status_code":${json}}]}`)).toMatchObject({ status_code: code });
  });

  test('an execution time of a million digits takes linear time', () => {
    const start = performance.now();
    expect(extract(`{"execution_time_ms":"${'1'.repeat(1_000_000)}x"}`)).toMatchObject({
      execution_time_ms: null,
    });
    expect(performance.now() - start).toBeLessThan(10_000);
  });
});

test('records of the other kinds have no extracted fields', () => {
  for (const kind of LOG_KINDS) {
    if (kind === 'edge' || kind === 'function_edge') continue;
    const metadata = { request: { url: 'https://h/a' }, function_id: 'f', response: { status_code: 1 } };
    expect(accept({ project: 'p', metadata }, kind).extracted).toStrictEqual({});
  }
});
