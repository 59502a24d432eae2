import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { formatTimestamp } from '../../src/domain/timestamp.ts';
import { micros, NOW } from '../support/app.ts';
import { isOnClickHouse } from '../support/clickhouse.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import {
  type PlainStats,
  percentileBounds,
  readApiCounts,
  readInvocationStats,
  readLogsAll,
  truncate,
} from '../support/reference-endpoints.ts';
import { useApp } from '../support/use-app.ts';

const SECOND = 1_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;
const DAY = 24n * HOUR;

// All runs share one store. The projects of each run have its tag in their names, so no run sees the records of another.
let runs = 0;
/** The ClickHouse of the tests takes about 0.1 s for a query. */
const RUNS = isOnClickHouse() ? 30 : 100;

/** ClickHouse may store a fraction with a different last digit, so exact comparisons need whole numbers there. */
const asStored = (ms: number) => (isOnClickHouse() ? Math.round(ms) : ms);

/** The current time of a run: anywhere in a week, and close to the start of a second, minute, hour or day. */
const nowMicros = fc
  .tuple(
    fc.bigInt(0n, 7n * DAY),
    fc.constantFrom(1n, SECOND, MINUTE, HOUR, DAY),
    fc.constantFrom(-1n, 0n, 1n),
  )
  .map(([ahead, unit, step]) => truncate(micros(NOW) + ahead, unit) + step);

/** Every window of the endpoints, with its bucket size. */
const WINDOWS = [
  [5n * MINUTE, SECOND],
  [15n * MINUTE, MINUTE],
  [HOUR, MINUTE],
  [HOUR, HOUR],
  [DAY, HOUR],
  [7n * DAY, DAY],
  [90n * DAY, DAY],
] as const;

/** The time of a record relative to now: close to every boundary that decides whether the record counts, or anywhere. */
const time: fc.Arbitrary<(now: bigint) => bigint> = fc.oneof(
  fc.tuple(fc.constantFrom(...WINDOWS), fc.constantFrom(-1n, 0n)).map(
    ([[window, bucket], step]) =>
      (now: bigint) =>
        truncate(now - window, bucket) + step,
  ),
  fc.tuple(fc.constantFrom(...WINDOWS), fc.constantFrom(-1n, 0n)).map(
    ([[, bucket], step]) =>
      (now: bigint) =>
        truncate(now, bucket) + bucket + step,
  ),
  fc.tuple(fc.constantFrom(0n, ...WINDOWS.map(([window]) => window)), fc.constantFrom(-1n, 0n, 1n)).map(
    ([window, step]) =>
      (now: bigint) =>
        now - window + step,
  ),
  fc.bigInt(-HOUR, HOUR).map(age => (now: bigint) => now - age),
  fc.bigInt(-HOUR, 8n * DAY).map(age => (now: bigint) => now - age),
);

const words = (text: string) => fc.constantFrom(...text.split(' '));
const projectName = fc.oneof(
  words("alpha Alpha o'hara % _ null 🦕 é e\u0301 $project \\"),
  fc.constant('alpha '),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
);
const text = fc.string({ unit: 'binary', maxLength: 12 });
const word = words('/rest /storage /auth /realtime auth /REST /re st / . é🦕');
const path = fc.array(word, { maxLength: 4 }).map(words => words.join(''));
const tier = fc.oneof(
  fc.constantFrom('FREE', 'PRO', 'PAYG', 'ENTERPRISE'),
  fc.constantFrom('free', '', 'GOLD', 'PRO ', 'x'.repeat(3000), '\0'),
);
/** Expressions that have the same meaning in RE2 and JavaScript. */
const pattern = fc
  .array(words('rest / . .* [a-z] [^a-z] é 🦕 a? (ab|/auth) \\. (re|st)+ % _'), { maxLength: 4 })
  .chain(parts => fc.constantFrom(parts.join(''), `${parts.join('')}$`));

/** The project (by index) and time of a record. Most records belong to the requested project, which has the index 0. */
const place = fc.record({ project: fc.constantFrom(0, 0, 0, 1, 2), time });
const projects = fc.tuple(projectName, projectName, projectName);

describe('random records and parameters', () => {
  const app = useApp();

  interface Run {
    readonly now: bigint;
    readonly records: readonly LogRecord[];
    readonly check: () => Promise<void>;
  }
  /** Appends the records of all runs at once, then checks each run at its time. */
  const checkRuns = async (kind: LogKind, run: fc.Arbitrary<Run>) => {
    const drawn = fc.sample(run, RUNS);
    await app.append(
      kind,
      drawn.flatMap(({ records }) => records),
    );
    for (const { now, records, check } of drawn) {
      app.setNow(formatTimestamp(now));
      await check().catch((cause: unknown) => {
        throw new Error(`at ${formatTimestamp(now)}, with ${fc.stringify(records)}`, { cause });
      });
    }
  };
  /** Returns the tag and the projects of a run. */
  const startRun = (names: readonly string[], now: bigint) => {
    const tag = `run${runs++}`;
    const at = (draft: { time: (now: bigint) => bigint }) => draft.time(now);
    return { tag, at, projectOf: (index: number) => `${tag}:${names[index]}` };
  };
  const query = async (name: string, parameters: Record<string, string | undefined>) => {
    const defined = Object.entries(parameters).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    );
    const { status, rows } = await app.query(name, Object.fromEntries(defined));
    expect(status).toBe(200);
    return rows;
  };

  test('functions.invocation-stats returns the same rows as the reference implementation', async () => {
    const functionId = fc.constantFrom('a', 'A', 'b', '', '🦕');
    const sent = fc.record({
      place,
      functionId: fc.option(functionId),
      ms: fc.option(
        fc.oneof(
          fc.constantFrom(0, 1, 60_000),
          fc.double({ min: 0, max: 1e6, noNaN: true, noDefaultInfinity: true }).map(asStored),
        ),
      ),
      status: fc.option(fc.constantFrom(100, 200, 302, 399, 400, 404, 499, 500, 599)),
    });
    const unknown = ['1DAY', ' 5min', 'hourly', '__proto__', '7day\0', 'x'.repeat(3000), '', undefined];
    const interval = fc.oneof(
      fc.constantFrom('5min', '15min', '1hr', '1day', '7day'),
      fc.constantFrom(...unknown),
    );
    const requested = fc.oneof(functionId, fc.constantFrom('%', 'null', ' ', "a' or 'a' = 'a"));
    await checkRuns(
      'function_edge',
      fc
        .tuple(
          nowMicros,
          projects,
          fc.array(sent, { maxLength: 40 }),
          interval,
          fc.option(requested, { nil: undefined }),
        )
        .map(([now, names, drafts, requestedInterval, requestedFunction]) => {
          const { at, projectOf } = startRun(names, now);
          const records = drafts.map(draft => ({
            ...functionEdgeRecord({ at: at(draft.place), project: projectOf(draft.place.project) }),
            extracted: {
              function_id: draft.functionId,
              execution_time_ms: draft.ms,
              status_code: draft.status,
            },
          }));
          const project = projectOf(0);
          const parameters = {
            project,
            ...(requestedFunction === undefined ? {} : { function_id: requestedFunction }),
            ...(requestedInterval === undefined ? {} : { interval: requestedInterval }),
          };
          const check = async () =>
            expectStats(
              await query('functions.invocation-stats', parameters),
              readInvocationStats(records, parameters, now),
            );
          return { now, records, check };
        }),
    );
  });

  test('usage.api-counts returns the same rows as the reference implementation', async () => {
    const interval = fc.constantFrom('minutely' as const, 'hourly' as const, 'daily' as const);
    const sent = fc.record({ place, path, host: fc.constantFrom('ab.', 'Ab_', 'é/', '') });
    await checkRuns(
      'edge',
      fc
        .tuple(nowMicros, projects, fc.array(sent, { maxLength: 40 }), pattern, interval)
        .map(([now, names, drafts, requestedPattern, requestedInterval]) => {
          const { tag, at, projectOf } = startRun(names, now);
          const records = drafts.map(draft =>
            edgeRecord({
              at: at(draft.place),
              project: projectOf(draft.place.project),
              url: `https://${tag}~${draft.host}${draft.path}`,
              path: draft.path,
            }),
          );
          const parameters = { project: `${tag}~${requestedPattern}`, interval: requestedInterval };
          const check = async () =>
            expect(await query('usage.api-counts', parameters)).toEqual(
              readApiCounts(records, parameters, now),
            );
          return { now, records, check };
        }),
    );
  });

  test('logs.all returns the same rows as the reference implementation', async () => {
    const sent = fc.record({
      place,
      id: text,
      message: text,
      metadata: fc.dictionary(text, fc.jsonValue({ maxDepth: 2 })),
    });
    // A bound is the time of one of the records, or one microsecond before or after it.
    const bound = fc.option(fc.tuple(fc.nat(), fc.constantFrom(-1n, 0n, 1n)), { nil: undefined });
    await checkRuns(
      'edge',
      fc
        .tuple(
          nowMicros,
          projects,
          fc.array(sent, { maxLength: 40 }),
          fc.option(tier, { nil: undefined }),
          bound,
          bound,
        )
        .map(([now, names, drafts, requestedTier, from, to]) => {
          const { at, projectOf } = startRun(names, now);
          // Every fourth record has the same time. Records with the same time need different ids, or their order is undefined.
          const records = drafts.map((draft, index) =>
            edgeRecord({
              id: `${draft.id}~${index}`,
              at: index % 4 === 0 ? now - SECOND : at(draft.place),
              project: projectOf(draft.place.project),
              message: draft.message,
              metadata: draft.metadata,
            }),
          );
          const project = projectOf(0);
          const near = ([index, step]: [number, bigint]) =>
            BigInt(records[index % records.length]?.timestampMicros ?? now) + step;
          const start = from === undefined ? undefined : near(from);
          const end = to === undefined ? undefined : near(to);
          const parameters = {
            project,
            ...(requestedTier === undefined ? {} : { project_tier: requestedTier }),
            ...(start === undefined ? {} : { start }),
            ...(end === undefined ? {} : { end }),
          };
          const check = async () => {
            const rows = await query('logs.all', {
              project,
              project_tier: requestedTier,
              iso_timestamp_start: start === undefined ? undefined : formatTimestamp(start),
              iso_timestamp_end: end === undefined ? undefined : formatTimestamp(end),
            });
            expect(rows).toEqual(readLogsAll(records, parameters, now));
          };
          return { now, records, check };
        }),
    );
  });
});

function expectStats(rows: readonly Record<string, unknown>[], expected: readonly PlainStats[]): void {
  expect(rows.map(({ timestamp, count, error_count }) => ({ timestamp, count, error_count }))).toEqual(
    expected.map(({ timestamp, count, error_count }) => ({ timestamp, count, error_count })),
  );
  for (const [index, { times }] of expected.entries()) {
    const row = rows[index] ?? {};
    const statistics = ['min', 'max', 'avg', 'p95', 'p99'].map(name => row[`${name}_execution_time`]);
    if (times.length === 0) {
      expect(statistics).toEqual([null, null, null, null, null]);
      continue;
    }
    const [min, max, avg] = statistics;
    expect([min, max]).toEqual([Math.min(...times), Math.max(...times)]);
    // The last digits of a sum of doubles depend on its order; near zero, a relative tolerance is too small.
    const exact = times.reduce((sum, time) => sum + time, 0) / times.length;
    expect(Math.abs(Number(avg) - exact)).toBeLessThanOrEqual(exact * 1e-9 + 1e-300);
    for (const percent of [95, 99]) {
      const { lowest, highest } = percentileBounds(times, percent);
      expect(row[`p${percent}_execution_time`]).toBeGreaterThanOrEqual(lowest);
      expect(row[`p${percent}_execution_time`]).toBeLessThanOrEqual(highest);
    }
  }
}
