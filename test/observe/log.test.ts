import { PassThrough, Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../src/observe/event.ts';
import { type LogFormat, logTo } from '../../src/observe/log.ts';

/** Observes one event each second. Returns the seconds in which a line was logged, with the lines. */
const logEachSecond = (
  eventAt: (second: number) => Event | undefined,
  seconds: number,
  format: LogFormat = 'text',
) => {
  let now = 5_000_000;
  const errors = new PassThrough();
  const observe = logTo(new PassThrough(), errors, format, { now: () => now });
  const logged: [number, string][] = [];
  for (let second = 0; second < seconds; second++, now += 1_000) {
    const event = eventAt(second);
    if (event !== undefined) observe(event);
    const line: Buffer | null = errors.read();
    if (line !== null) logged.push([second, line.toString()]);
  }
  return logged;
};
const failed: Event = { type: 'apply_failed', kind: 'edge', error: new Error('the store is gone') };

describe('the log of a failure that repeats every second', () => {
  test('has a line immediately, then after growing pauses, and at last once a minute', () => {
    const logged = logEachSecond(() => failed, 300);
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
    expect(logged[0]?.[1]).toMatch(
      /^\S+ error apply_failed: applying records of kind edge to the store failed.*: the store is gone\n$/,
    );
    expect(logged[3]?.[1]).toMatch(/: the store is gone \(3 similar messages suppressed\)\n$/);
    const json = logEachSecond(() => failed, 8, 'json').map(([, line]) => JSON.parse(line).suppressed);
    expect(json).toEqual([undefined, undefined, 1, 3]);
  });

  test('reports the recovery, and logs the next failure immediately', () => {
    const logged = logEachSecond(
      second =>
        second === 10
          ? { type: 'apply_recovered', kind: 'edge', failures: 10 }
          : second < 13
            ? failed
            : undefined,
      20,
    );
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 7, 10, 11, 12]);
    expect(logged[4]?.[1]).toMatch(
      / info {2}apply_recovered: applying records of kind edge works again after 10 failed attempts\n$/,
    );
    expect(logged[5]?.[1]).not.toContain('suppressed');
  });

  test('logs a failure immediately after minutes without one', () => {
    const logged = logEachSecond(second => (second < 6 || second === 400 ? failed : undefined), 500);
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 400]);
  });

  test('does not suppress other events', () => {
    const other: Event = { type: 'spool_write_failed', error: new Error('the disk is full') };
    const otherKind: Event = { ...failed, kind: 'auth' };
    const logged = logEachSecond(second => (second === 5 ? other : second === 6 ? otherKind : failed), 8);
    expect(logged.map(([second]) => second)).toEqual([0, 1, 3, 5, 6, 7]);
  });
});

test('a failure that is a defect of the program is logged with its stack', () => {
  const defect: Event = { type: 'apply_failed', kind: 'edge', error: new TypeError('x is not a function') };
  const [[, line] = [0, '']] = logEachSecond(() => defect, 1);
  expect(line).toMatch(/: applying records.*failed.*: TypeError: x is not a function\n +at .*log\.test\.ts/);
});

/** Returns the lines that the log writes for these events. */
const logLines = (events: readonly Event[], format: LogFormat = 'json') => {
  let text = '';
  const errors = new Writable({
    decodeStrings: false,
    write(chunk: string, _, done) {
      text += chunk;
      done();
    },
  });
  const clock = () => 1_794_659_696_789_012n;
  const observe = logTo(new PassThrough(), errors, format, { now: () => 5_000_000 }, clock);
  for (const event of events) observe(event);
  return text.split('\n').slice(0, -1);
};
const slowQuery: Event = {
  type: 'query_completed',
  endpoint: 'logs.all',
  id: 'an-id',
  queuedMs: 400.4,
  executedMs: 700.1234,
  rows: 3,
};
const refused: Event = {
  type: 'token_refused',
  reason: 'expired_token',
  address: '192.0.2.1',
  route: '/api/logs',
  tokenName: 'shipper',
};

describe('a log line', () => {
  test('in JSON has time, level, event and message, then the details of the event', () => {
    expect(logLines([slowQuery, { type: 'stopped' }]).map(line => JSON.parse(line))).toEqual([
      {
        time: '2026-11-14T12:34:56.789Z',
        level: 'warn',
        event: 'slow_query',
        message: 'slow query of logs.all: 400 ms in the queue, 700 ms in the store, 3 rows (request an-id)',
        endpoint: 'logs.all',
        request_id: 'an-id',
        queued_ms: 400.4,
        executed_ms: 700.123,
        rows: 3,
      },
      { time: '2026-11-14T12:34:56.789Z', level: 'info', event: 'stopped', message: 'stopped' },
    ]);
  });

  test('in text has time, level, event and message', () => {
    expect(logLines([refused], 'text')).toEqual([
      '2026-11-14T12:34:56.789Z warn  token_refused: refused a request to /api/logs from 192.0.2.1: its token has expired (token shipper)',
    ]);
  });

  test('in text stays one line, whatever an error says, except for a stack trace', () => {
    const reason = 'bad\rvalue\u001b[31m';
    const [line = '', ...others] = logLines(
      [{ type: 'record_rejected_by_store', kind: 'edge', reason }],
      'text',
    );
    expect(others).toEqual([]);
    expect(line).toMatch(/: bad value \[31m$/);
    const defect: Event = {
      type: 'request_failed',
      route: '/',
      endpoint: undefined,
      status: 500,
      id: 'i',
      error: new Error('x'),
    };
    expect(logLines([defect], 'text')[1]).toMatch(/^ +at /);
  });
});

test('the line about a failed request names its route and its endpoint, and the status that the client got', () => {
  const messageOf = (route: string, endpoint?: string) =>
    logLines(
      [{ type: 'request_unavailable', route, endpoint, status: 504, id: 'i', error: new Error('x') }],
      'plain',
    )[0];
  expect(messageOf('/api/endpoints/explain/*', 'logs.all')).toBe(
    'request i: /api/endpoints/explain/logs.all failed with 504: x',
  );
  expect(messageOf('/api/logs')).toBe('request i: /api/logs failed with 504: x');
  expect(messageOf('')).toBe('request i: an unknown path failed with 504: x');
  const failedWith = (status: number): Event => {
    const request = { route: '/api/admin/backup', endpoint: undefined, status, id: 'i' };
    return { type: 'request_failed', ...request, error: new Error('x') };
  };
  const firstLineOf = (status: number) => logLines([failedWith(status)], 'plain')[0];
  expect(firstLineOf(500)).toBe('request i: /api/admin/backup failed with 500: Error: x');
  expect(firstLineOf(200)).toBe('request i: /api/admin/backup failed after status 200 was sent: Error: x');
});

test('the lines about damage name the part and what to do', () => {
  const lines = logLines(
    [
      { type: 'verification_failed', kind: 'edge', error: new Error('10 differ') },
      { type: 'part_set_aside', kind: 'edge', file: 'edge-000007.duckdb', problem: 'it is damaged' },
    ],
    'plain',
  );
  expect(lines[0]).toBe(
    'A NEW PART OF KIND edge DIFFERS FROM WHAT WAS WRITTEN; it is written again, and no record is lost. Check the disk and the memory of this machine: 10 differ',
  );
  expect(lines[1]).toMatch(/^PART edge-000007\.duckdb WAS SET ASIDE: it is damaged\. .*restore this file/);
});

test('queries are logged from 1 s on, and never in the plain format', () => {
  const linesOf = (executedMs: number, format?: LogFormat) =>
    logLines([{ ...slowQuery, queuedMs: 400, executedMs }], format).length;
  expect([linesOf(600), linesOf(599.9), linesOf(600, 'plain')]).toEqual([1, 0, 0]);
});

test('refused tokens are throttled for each address, and together beyond 500 addresses', () => {
  const from = (address: string): Event => ({ ...refused, address });
  expect(logLines([from('a'), from('a'), from('b')])).toHaveLength(2);
  const many = Array.from({ length: 2000 }, (_, index) => from(`192.0.2.${index}`));
  expect(logLines(many)).toHaveLength(501);
});

test('many sources of rejected records do not suppress other events', () => {
  const rejected = (message: string): Event => ({ type: 'otlp_records_rejected', tokenName: 't', message });
  const many = Array.from({ length: 600 }, (_, index) => rejected(`source ${index}`));
  expect(logLines([...many, refused, failed])).toHaveLength(503);
});

test('failed refreshes of cached results are logged with endpoint and cause, and throttled for each endpoint', () => {
  const error = new Error('the store is unavailable', { cause: new Error('the disk of the server is full') });
  const refresh = (endpoint: string): Event => ({ type: 'cache_refresh_failed', endpoint, error });
  const lines = logLines([refresh('logs.all'), refresh('logs.all'), refresh('usage.api-counts')]);
  expect(lines.map(line => JSON.parse(line))).toMatchObject([
    {
      level: 'warn',
      endpoint: 'logs.all',
      message:
        'refreshing a cached result of logs.all failed; it is retried, and the cached result stays until it expires: the disk of the server is full',
    },
    { endpoint: 'usage.api-counts' },
  ]);
});
