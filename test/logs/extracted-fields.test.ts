import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { accept } from './door.ts';

const edge = (request: unknown) =>
  accept({ project: 'proj', message: 'm', metadata: { request } }, 'edge').extracted;

describe('what is extracted out of an edge record', () => {
  test('the URL and the path that were sent', () => {
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
  ])('without a path, the path of the URL %j is %j', (url, path) => {
    expect(edge({ url })).toStrictEqual({ url, path });
    expect(edge({ url, path: '' })).toStrictEqual({ url, path });
    expect(edge({ url, path: 7 })).toStrictEqual({ url, path });
  });

  test('without a URL it is made of host and path', () => {
    expect(edge({ host: 'h', path: '/a' })).toStrictEqual({ url: 'https://h/a', path: '/a' });
    expect(edge({ url: '', host: 'h' })).toStrictEqual({ url: 'https://h', path: '' });
  });

  test('without URL and host it is made of project and path', () => {
    expect(edge({ path: '/a' })).toStrictEqual({ url: 'https://proj/a', path: '/a' });
    expect(edge({ url: null, host: '', path: '/a' })).toStrictEqual({ url: 'https://proj/a', path: '/a' });
    expect(edge(undefined)).toStrictEqual({ url: 'https://proj', path: '' });
    expect(edge('text')).toStrictEqual({ url: 'https://proj', path: '' });
  });

  test('a number is no URL, however long', () => {
    expect(
      accept('{"project":"proj","metadata":{"request":{"url":12345678901234567890,"path":1}}}', 'edge')
        .extracted,
    ).toStrictEqual({ url: 'https://proj', path: '' });
  });

  test('a request in an array of one is read and stored as it was sent', () => {
    const record = accept({ project: 'p', metadata: [{ request: [{ url: 'https://h/a' }] }] }, 'edge');
    expect(record.extracted).toStrictEqual({ url: 'https://h/a', path: '/a' });
    expect(record.metadata).toBe('{"request":[{"url":"https://h/a"}]}');
  });

  test('a URL of a megabyte takes linear time', () => {
    const begin = performance.now();
    edge({ url: 'h'.repeat(1_000_000) });
    expect(performance.now() - begin).toBeLessThan(10_000);
  });
});

describe('what is extracted out of a function_edge record', () => {
  const lift = (metadata: string) =>
    accept(`{"project":"p","metadata":${metadata}}`, 'function_edge').extracted;

  test('function id, execution time and status code', () => {
    expect(lift('{"function_id":"f","execution_time_ms":9.5,"response":{"status_code":200}}')).toStrictEqual({
      function_id: 'f',
      execution_time_ms: 9.5,
      status_code: 200,
    });
  });

  test('what is missing is null', () => {
    const nothing = { function_id: null, execution_time_ms: null, status_code: null };
    expect(lift('{"a":1}')).toStrictEqual(nothing);
    expect(lift('{"function_id":null,"execution_time_ms":null,"response":null}')).toStrictEqual(nothing);
    expect(lift('{"function_id":{},"execution_time_ms":[1],"response":"200"}')).toStrictEqual(nothing);
    expect(
      lift('{"function_id":true,"execution_time_ms":true,"response":{"status_code":true}}'),
    ).toStrictEqual(nothing);
  });

  test.each([
    ['"f"', 'f'],
    ['""', ''],
    ['7', '7'],
    ['12345678901234567890', '12345678901234567890'],
  ])('the function id %s is the text %j', (json, id) => {
    expect(lift(`{"function_id":${json}}`)).toMatchObject({ function_id: id });
  });

  test.each([
    ['0', 0],
    ['-1.5', -1.5],
    ['1e2', 100],
    ['"12"', 12],
    ['"12.5"', 12.5],
    ['"1e2"', 100],
    ['0.1000000000000000055511151231257827', 0.1],
    ['1e15', 1e15],
    ['1000000000000001', null],
    ['1000000000000000000001', null],
    ['1e400', null],
    ['"1e400"', null],
    ['""', null],
    ['" "', null],
    ['"12ms"', null],
    ['"0x1f"', null],
    ['"NaN"', null],
    ['"Infinity"', null],
  ])('the execution time %s is %j', (json, milliseconds) => {
    expect(lift(`{"execution_time_ms":${json}}`)).toMatchObject({ execution_time_ms: milliseconds });
  });

  test.each([
    ['200', 200],
    ['"404"', 404],
    ['-1', -1],
    ['2147483647', 2147483647],
    ['-2147483648', -2147483648],
    ['2147483648', null],
    ['-2147483649', null],
    ['"2147483648"', null],
    ['200.5', null],
    ['"200.0"', null],
    ['"2e2"', null],
    ['" 200"', null],
    ['""', null],
    ['12345678901234567890', null],
    ['1e400', null],
  ])('the status code %s is %j', (json, code) => {
    expect(lift(`{"response":{"status_code":${json}}}`)).toMatchObject({ status_code: code });
    expect(lift(`{"response":[{"status_code":${json}}]}`)).toMatchObject({ status_code: code });
  });

  test('an execution time of a megabyte of digits takes linear time', () => {
    const begin = performance.now();
    expect(lift(`{"execution_time_ms":"${'1'.repeat(1_000_000)}x"}`)).toMatchObject({
      execution_time_ms: null,
    });
    expect(performance.now() - begin).toBeLessThan(10_000);
  });
});

test('nothing is extracted out of the other kinds', () => {
  for (const kind of LOG_KINDS) {
    if (kind === 'edge' || kind === 'function_edge') continue;
    const metadata = { request: { url: 'https://h/a' }, function_id: 'f', response: { status_code: 1 } };
    expect(accept({ project: 'p', metadata }, kind).extracted).toStrictEqual({});
  }
});
