import { beforeAll, describe, expect, test } from 'vitest';
import { micros } from '../support/app.ts';
import { edgeRecord, record } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const NAME = 'usage.api-counts';

// What property.test.ts does not cover. The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
describe('usage.api-counts', () => {
  const app = useApp();
  const empty = useApp();

  const rowsOf = async (parameters: Record<string, string>) => {
    const { status, rows } = await app.query(NAME, parameters);
    expect(status).toBe(200);
    return rows;
  };
  /** Number of matching records with the path /rest. */
  const countOf = async (project: string) =>
    (await rowsOf({ project, interval: 'hourly' })).reduce(
      (sum, row) => sum + Number(row['total_rest_requests']),
      0,
    );

  test('a row has a UTC datetime and four integers, in the documented order', async () => {
    await app.append('edge', [
      edgeRecord({ at: '2026-11-14T12:34:01.5Z', project: 'shape', path: '/rest/v1/a' }),
      edgeRecord({ at: '2026-11-14T12:34:02Z', project: 'shape', path: '/storage/v1/b' }),
      edgeRecord({ at: '2026-11-14T12:33:59.999999Z', project: 'shape', path: '/rest/v1/c' }),
    ]);
    expect((await app.query(NAME, { project: 'shape', interval: 'minutely' })).text).toBe(
      '{"result":[{"timestamp":"2026-11-14T12:33:00Z","total_rest_requests":1,"total_storage_requests":0,' +
        '"total_auth_requests":0,"total_realtime_requests":0},' +
        '{"timestamp":"2026-11-14T12:34:00Z","total_rest_requests":1,"total_storage_requests":1,' +
        '"total_auth_requests":0,"total_realtime_requests":0}]}',
    );
  });

  test('counts only records of the edge log', async () => {
    const at = '2026-11-14T12:34:00Z';
    await app.append('edge', [edgeRecord({ at, project: 'kinds' })]);
    for (const kind of ['postgres', 'function', 'auth', 'realtime', 'storage', 'rest', 'pooler'] as const)
      await app.append(kind, [record({ at, project: 'kinds', message: 'https://kinds.example/rest' })]);
    expect(await countOf('kinds')).toBe(1);
  });

  describe('intervals', () => {
    const MINUTE = 60_000_000n;
    const DAY = 86_400_000_000n;
    // Interval, start of the window, its bucket, the bucket of now, distance of records, maximum number of rows.
    const INTERVALS = [
      ['minutely', '2026-11-14T11:34:56.789012Z', '2026-11-14T11:34:00Z', '2026-11-14T12:34:00Z', MINUTE, 61],
      ['hourly', '2026-11-14T11:34:56.789012Z', '2026-11-14T11:00:00Z', '2026-11-14T12:00:00Z', MINUTE, 2],
      ['daily', '2026-11-07T12:34:56.789012Z', '2026-11-07T00:00:00Z', '2026-11-14T00:00:00Z', DAY, 8],
    ] as const;

    test.each(INTERVALS)(
      '%s returns its maximum number of rows, in ascending order',
      async (interval, from, first, last, step, maxRows) => {
        const project = `rows-${interval}`;
        const span = micros('2026-11-14T12:34:56.789012Z') - micros(from);
        const times = Array.from(
          { length: Number(span / step) + 1 },
          (_, i) => micros(from) + BigInt(i) * step,
        );
        await app.append(
          'edge',
          times.reverse().map(at => edgeRecord({ at, project })),
        );
        const buckets = (await rowsOf({ project, interval })).map(row => row['timestamp']);
        expect(buckets).toHaveLength(maxRows);
        expect(buckets).toEqual([...buckets].sort());
        expect([buckets[0], buckets.at(-1)]).toEqual([first, last]);
      },
    );
  });

  describe('the pattern', () => {
    beforeAll(() =>
      app.append(
        'edge',
        [
          'https://pat-one.example.com/rest/v1/todos?select=id',
          'https://pat-two.example.com/rest/v1/todos',
          'https://PAT-three.example.com/rest/v1/ünïcödé/🦕',
          'https://other.net/rest?ref=pat-four',
        ].map(url => edgeRecord({ at: '2026-11-14T12:34:00Z', project: 'unrelated', url, path: '/rest' })),
      ),
    );

    test.each([
      ['does not match the project', 'unrelated', 0],
      ['is case-insensitive with the flag i', '(?i)pat-t', 2],
      ['counts a character outside ASCII as one', '/.nïc.dé/.$', 1],
      ['accepts a letter as a hexadecimal escape', '\\x70at-one', 1],
      ['accepts the Unicode class of letters', '\\pLat-one', 1],
      ['treats a bracket at the start of a class as a member', '[]p]at-one', 1],
      ['is bound, never inserted into the SQL text', "x' or '1'='1", 0],
    ])('%s: %s', async (_, pattern, expected) => {
      expect(await countOf(pattern)).toBe(expected);
    });

    const INVALID = [
      ['(', 'missing )'],
      ['[a-', 'missing ]'],
      ['*a', 'repetition'],
      ['a{1001}', 'repetition'],
      ['(?=lookahead)', '(?='],
      ['(a)\\1', '\\1'],
      ['trailing\\', 'trailing'],
      ['(((x{100}){100}){100}){100}', 'repetition'],
      ['(\\pL{500}\\pN{500}){1}(\\pL{500}\\pN{500})', 'too large'],
    ] as const;

    // On an empty store too: no query may be needed to find the problem.
    test.each(INVALID)('the invalid pattern %s is rejected with the reason', async (pattern, reason) => {
      for (const each of [app, empty]) {
        const { status, error, text } = await each.query(NAME, { project: pattern, interval: 'daily' });
        expect(status).toBe(400);
        expect(error).toMatchObject({ code: 'invalid_parameter', param: 'project' });
        expect(error.message).toContain(reason);
        expect(text).not.toMatch(/select|duckdb|regexp_matches|LINE 1/i);
      }
    });

    test.each(['(?:[ab]{0,1000}c)', 'a[ab]{60}z', 'a.{0,50}z', 'a(?:aa|ab|ba|bb){10}z', 'a\\pL{10}z'])(
      'the expensive pattern %s is rejected with what is allowed',
      async pattern => {
        const { status, error } = await app.query(NAME, { project: pattern, interval: 'daily' });
        expect(status).toBe(400);
        expect(error).toMatchObject({ code: 'invalid_parameter', param: 'project' });
        expect(error.message).toMatch(/its size is \d+, at most 60 is allowed/);
        expect(error.message).toContain('Use * or +');
      },
    );

    /** A URL of this many bytes: `before`, as many letters x as needed, then `after`. */
    const urlOf = (bytes: number, before: string, after: string) =>
      before + 'x'.repeat(bytes - Buffer.byteLength(before + after)) + after;

    test.each([
      [
        'ends within the first 2,048 bytes',
        `${urlOf(2048, 'https://limit-1', 'END')}more`,
        'limit-1.*END',
        1,
      ],
      ['ends after byte 2,048', urlOf(2049, 'https://limit-2', 'END'), 'limit-2.*END', 0],
      ['is anchored at the end of the part', `${urlOf(2048, 'https://limit-3', 'EN')}D`, 'limit-3.*EN$', 1],
      ['ends in é, the last whole character', `${urlOf(2048, 'https://limit-4', 'é')}more`, 'limit-4.*é$', 1],
      ['ends before é, of which one byte fits', urlOf(2049, 'https://limit-5', 'é'), 'limit-5x*$', 1],
      ['ends before 東, of which one byte fits', urlOf(2050, 'https://limit-6', '東'), 'limit-6x*$', 1],
      ['ends before 東, of which two bytes fit', urlOf(2049, 'https://limit-7', '東'), 'limit-7x*$', 1],
      ['ends before 🦕, of which one byte fits', urlOf(2051, 'https://limit-8', '🦕'), 'limit-8x*$', 1],
      ['ends before 🦕, of which three bytes fit', urlOf(2049, 'https://limit-9', '🦕'), 'limit-9x*$', 1],
      ['is in a URL of 900,000 bytes', urlOf(900_000, 'https://limit-0', 'END'), 'limit-0x*$', 1],
    ])(
      'of a long URL, only the first 2,048 bytes are matched: the match %s',
      async (_, url, pattern, expected) => {
        const at = '2026-11-14T12:34:00Z';
        await app.append('edge', [edgeRecord({ at, project: 'long', url, path: '/rest' })]);
        expect(await countOf(pattern)).toBe(expected);
      },
    );

    test.each(['(a+)+$', '(a|aa)+$', '(a|a)*$', '(.*)*x$', '(a?){9}a{9}$'])(
      'a pattern with exponential backtracking (%s) is evaluated in linear time',
      async pattern => {
        const at = '2026-11-14T12:34:00Z';
        const project = `long ${pattern}`;
        // A backtracking engine would need about 2 to the power of 2,000 steps.
        const url = `https://backtracking.example/${'a'.repeat(2000)}!`;
        await app.append('edge', [edgeRecord({ at, project, url, path: '/rest' })]);
        expect(await countOf(`^https://backtracking\\.example/${pattern}`)).toBe(0);
      },
    );
  });
});
