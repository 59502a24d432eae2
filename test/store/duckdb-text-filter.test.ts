import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { formatManifest } from '../../src/store/duckdb/manifest.ts';
import type { RequiredText } from '../../src/store/required-text.ts';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore, overwriteRandomly } from '../support/embedded-store.ts';

const DAY = 86_400_000_000n;
const IDLE_MS = 30_000;
/** The filter selects or skips this many consecutive records of a part. */
const VECTOR_ROWS = 2048;

let embedded: EmbeddedStore;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  embedded = await EmbeddedStore.open({ minFilteredRecords: 1 });
});
afterEach(async () => {
  vi.useRealTimers();
  await embedded.remove();
});

/** Compaction merges the parts of a window when none was added to it for a while. */
async function compact(): Promise<void> {
  vi.advanceTimersByTime(IDLE_MS);
  while ((await embedded.store.maintain('compact')) > 0);
}

const numbers = (rows: readonly (readonly unknown[])[]) =>
  rows.map(([id]) => Number(String(id).slice(1))).sort((a, b) => a - b);
/** The numbers of the records that the query reads: without a condition of its own, it returns what the filter does not skip. */
const readNumbers = async (requiredText?: RequiredText) =>
  numbers((await embedded.query('select id from edge_logs', { requiredText })).rows);
const withTexts = (records: readonly LogRecord[], textOf: (index: number) => Partial<LogRecord>) =>
  records.map((record, index) => ({ ...record, project: 'p', ...textOf(index) }));

/** One part of three vectors. Its records are sorted, the newest first: n6143 to n0. `textOf` gets the number of a record. */
async function createPart(textOf: (index: number) => Partial<LogRecord>): Promise<void> {
  const records = withTexts(embedded.createRecords(3 * VECTOR_ROWS), textOf);
  await embedded.flush(records.slice(0, 3000));
  await embedded.flush(records.slice(3000));
  await compact();
  expect(embedded.parts).toMatchObject([{ records: 3 * VECTOR_ROWS, hasTextFilter: true }]);
}

const vectorsOf = (read: readonly number[]) =>
  [0, 1, 2].filter(vector => read.some(number => Math.floor(number / VECTOR_ROWS) === vector));
const vectorsWith = async (text: string) => {
  const read = await readNumbers({ text });
  expect(read.length % VECTOR_ROWS).toBe(0);
  return vectorsOf(read);
};

describe('a query that requires a text', () => {
  test('reads only the records near those that contain it', async () => {
    const id = '4f2a91c07be35d8846aa0c1e93b7d2f5';
    await createPart(index => ({
      eventMessage: index === 100 ? 'a Zebra crossing' : index < VECTOR_ROWS ? 'a horse' : 'a donkey',
      metadata: `{"request":"${index === 5000 ? id : index.toString(16).padStart(32, 'c3')}","n":"${index * 7919}"}`,
    }));
    expect(await vectorsWith('zebra')).toEqual([0]);
    expect(await vectorsWith('zebra crossing')).toEqual([0]);
    expect(await vectorsWith('ebra cros')).toEqual([0]);
    expect(await vectorsWith('horse')).toEqual([0]);
    expect(await vectorsWith('donkey')).toEqual([1, 2]);
    expect(await vectorsWith('unicorn')).toEqual([]);
    expect(await vectorsWith('request')).toEqual([0, 1, 2]);
    for (const part of [id, id.slice(1), id.slice(3, 20), id.slice(6, -5)])
      expect([part, await vectorsWith(part)]).toEqual([part, [2]]);
    for (const short of ['', 'z', 'zz']) expect(await vectorsWith(short)).toEqual([0, 1, 2]);
  });

  test('combines texts', async () => {
    const words = ['red apple', 'green apple', 'green pear'];
    await createPart(index => ({ eventMessage: words[Math.floor(index / VECTOR_ROWS)] ?? '' }));
    const [red, green, pear, none] = ['red', 'green', 'pear', 'plum'].map(text => ({ text }));
    const vectors = async (required: unknown) => vectorsOf(await readNumbers(required as RequiredText));
    expect(await vectors({ all: [green, pear] })).toEqual([2]);
    expect(await vectors({ all: [red, pear] })).toEqual([]);
    expect(await vectors({ any: [red, pear] })).toEqual([0, 2]);
    expect(await vectors({ any: [none, { all: [green, { any: [red, { text: 'apple' }] }] }] })).toEqual([1]);
    expect(await vectors({ all: [] })).toEqual([0, 1, 2]);
    expect(await vectors({ any: [none, { all: [] }] })).toEqual([0, 1, 2]);
  });

  test.each([
    ['another letter case', 'ToKEN', '{}'],
    ['the Kelvin sign', 'to\u212aen', '{}'],
    ['a Kelvin sign in JSON', '', '{"a":"to\u212aen"}'],
    ['an escape of a letter', '', String.raw`{"a":"t\u006fken"}`],
    ['an escape in upper case', '', String.raw`{"a":"to\u004Ben"}`],
    ['an escaped Kelvin sign', '', String.raw`{"a":"to\u212Aen"}`],
    ['characters beyond ASCII around it', 'ätokené', '{}'],
    ['an id around it', '', '{"a":"0123456789abcdefgtoken0123456789"}'],
  ])('reads a record with %s', async (_, eventMessage, metadata) => {
    await createPart(index =>
      index === 3000 ? { eventMessage, metadata } : { metadata: '{"b":"\\u003c\\n\\\\"}' },
    );
    expect(await vectorsWith('token')).toEqual([1]);
  });

  test('reads a record with a long s, or an escaped space or digit', async () => {
    await createPart(index =>
      index === 0
        ? { eventMessage: 'me\u017f\u017fage' }
        : index === 3000
          ? { metadata: String.raw`{"a":"no\u0020\u0034"}` }
          : {},
    );
    expect(await vectorsWith('message')).toEqual([0, 1]); // an escape of a space may hide anything
    expect(await vectorsWith('no 4')).toEqual([0, 1]);
  });

  test('reads memtables and parts without a filter in full', async () => {
    await createPart(() => ({}));
    await embedded.flush(withTexts(embedded.createRecords(2), () => ({})));
    await embedded.apply(withTexts(embedded.createRecords(2), () => ({})));
    expect(await readNumbers({ text: 'unicorn' })).toEqual([6144, 6145, 6146, 6147]);
  });

  test('reads nothing if no record of the kind can match', async () => {
    await createPart(() => ({}));
    expect(await readNumbers({ text: 'unicorn' })).toEqual([]);
    const { rows } = await embedded.query('select count(*)::varchar from edge_logs', {
      requiredText: { text: 'unicorn' },
    });
    expect(rows).toEqual([['0']]);
  });
});

describe('the text filter of a part', () => {
  test('is written again when a project is erased or records expire', async () => {
    const secrets = ['alpha secret', 'beta secret', 'gamma secret'];
    await createPart(index => {
      const vector = Math.floor(index / VECTOR_ROWS);
      return { project: `p${vector}`, eventMessage: secrets[vector] ?? '' };
    });
    await embedded.store.eraseProject({ project: 'p1' });
    expect(embedded.parts).toMatchObject([{ records: 2 * VECTOR_ROWS, hasTextFilter: true }]);
    expect(vectorsOf(await readNumbers({ text: 'secret' }))).toEqual([0, 2]);
    expect(await readNumbers({ text: 'beta' })).toEqual([]);
    expect(vectorsOf(await readNumbers({ text: 'gamma' }))).toEqual([2]);

    const expiredBefore = micros(NOW) - DAY + BigInt(2 * VECTOR_ROWS) * 1_000_000n;
    await embedded.store.maintain({ expire: { expiredBefore, rewriteBefore: expiredBefore } });
    expect(embedded.parts).toMatchObject([{ records: VECTOR_ROWS, hasTextFilter: true }]);
    expect(await readNumbers({ text: 'alpha' })).toEqual([]);
    expect(vectorsOf(await readNumbers({ text: 'gamma' }))).toEqual([2]);
  });

  test('is not needed: if it is damaged, the part is read in full', async () => {
    await createPart(() => ({}));
    await embedded.close();
    const path = embedded.partPath(embedded.parts[0]?.file ?? '');
    const instance = await DuckDBInstance.create(path, { access_mode: 'READ_ONLY' });
    const connection = await instance.connect();
    const read = (sql: string) => connection.runAndReadAll(sql).then(result => Number(result.value(0, 0)));
    const block = await read(
      "select min(block_id) from pragma_storage_info('text_filter') where block_id >= 0",
    );
    const blockBytes = await read('select block_size from pragma_database_size()');
    connection.closeSync();
    instance.closeSync();
    overwriteRandomly(path, 3 * 4096 + block * blockBytes, blockBytes);
    await embedded.reopen();
    expect(await readNumbers({ text: 'unicorn' })).toHaveLength(3 * VECTOR_ROWS);
    expect(embedded.manifest.setAside).toEqual([]);
  });

  test('is not read if the manifest does not name it, or if it is missing', async () => {
    await createPart(() => ({}));
    const changeManifest = async (hasTextFilter: boolean | undefined) => {
      await embedded.close();
      const { manifest } = embedded;
      const parts = manifest.parts.map(part => ({ ...part, hasTextFilter }));
      writeFileSync(embedded.pathOf('manifest.json'), formatManifest({ ...manifest, parts }));
      await embedded.reopen({ minFilteredRecords: Number.POSITIVE_INFINITY });
    };
    await changeManifest(undefined);
    expect(await readNumbers({ text: 'unicorn' })).toHaveLength(3 * VECTOR_ROWS);
    await embedded.flush(withTexts(embedded.createRecords(1), () => ({})));
    await changeManifest(true);
    expect(await readNumbers({ text: 'unicorn' })).toHaveLength(3 * VECTOR_ROWS + 1);
  });

  test('is written within a small memory limit if records are large', async () => {
    await embedded.reopen({ memoryLimit: '200MB' });
    const text = (size: number) => 'lorem ipsum '.repeat(size / 12);
    const records = withTexts(embedded.createRecords(4000), index => ({
      eventMessage: index % 100 === 0 ? `${text(1_000_000)} unicorn ${index}` : text(20_000),
    }));
    for (let i = 0; i < records.length; i += 500) await embedded.flush(records.slice(i, i + 500));
    await compact();
    expect(embedded.parts.every(({ hasTextFilter }) => hasTextFilter)).toBe(true);
    expect(await readNumbers({ text: 'unicorn' })).toContain(3900);
    expect(await readNumbers({ text: 'griffin' })).toEqual([]);
  }, 120_000);
});

describe('every search returns the same records with and without the filter', () => {
  const PIECES = [
    'token',
    'TOKEN',
    'to\u212aen',
    'message',
    'me\u017fsage',
    'GET /v1/items',
    'deadbeef',
    '4f2a91c0',
    '0042',
    ' ',
    '-',
    'ä',
    '日本',
  ];
  const piece = fc.oneof(
    fc.constantFrom(...PIECES),
    fc.string({ maxLength: 6 }),
    fc.string({ unit: 'binary', maxLength: 4 }),
  );
  const text = fc.array(piece, { maxLength: 6 }).map(pieces => pieces.join('').replaceAll('\0', ''));
  /** JSON text with some characters as escapes. */
  const json = fc.tuple(text, fc.nat(9)).map(([value, every]) => {
    const escaped = [...JSON.stringify(value).slice(1, -1)].map((character, index) =>
      index % 10 === every && /[a-z0-9 ]/i.test(character) && every > 6
        ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
        : character,
    );
    return validJson(`{"note":"${escaped.join('')}"}`) ?? JSON.stringify({ note: value });
  });
  const searched = fc
    .oneof(
      fc.constantFrom('token', 'message', 'get ', 'deadbeef', 'beef4f2a', '4f2a91c00042', 'tokentoken'),
      text,
    )
    .map(value => value.toLowerCase().replace(/[^a-z0-9 ]/g, ''));
  const required: fc.Memo<RequiredText> = fc.memo(depth =>
    depth <= 1
      ? searched.map(value => ({ text: value }))
      : fc.oneof(
          searched.map(value => ({ text: value })),
          fc.array(required(depth - 1), { maxLength: 3 }).map(all => ({ all })),
          fc.array(required(depth - 1), { maxLength: 3 }).map(any => ({ any })),
        ),
  );

  /** The same condition in SQL, on the message, the JSON text of the metadata, and a decoded value of it. */
  function toSql(condition: RequiredText): string {
    if ('all' in condition) return `(${['true', ...condition.all.map(toSql)].join(' and ')})`;
    if ('any' in condition) return `(${['false', ...condition.any.map(toSql)].join(' or ')})`;
    const columns = ['event_message', 'metadata::varchar', "metadata->>'$.note'"];
    return `(${columns.map(column => `regexp_matches(${column}, '(?i)${condition.text}')`).join(' or ')})`;
  }

  test('random records and texts', async () => {
    // Each sample is in a vector of its own, so that the filter skips many: other records have no text.
    const samples = fc.sample(fc.record({ eventMessage: text, metadata: json }), { numRuns: 24, seed: 31 });
    const records = embedded.createRecords(samples.length * 1000).map((record, index) => ({
      ...record,
      project: `p${Math.floor(index / 9000)}`,
      ...(index % 1000 === 0 ? samples[index / 1000] : { eventMessage: '', metadata: '{}' }),
    }));
    for (const [first, last] of [
      [0, 9000],
      [9000, 18_000],
    ])
      await embedded.flush(records.slice(first, last));
    await compact();
    await embedded.flush(records.slice(18_000, 21_000)); // a part without a filter
    await embedded.apply(records.slice(21_000));
    expect(embedded.parts).toMatchObject([{ hasTextFilter: true }, { hasTextFilter: false }]);
    let skipped = 0;
    await fc.assert(
      fc.asyncProperty(required(3), async requiredText => {
        const sql = `select id from edge_logs where ${toSql(requiredText)}`;
        const expected = numbers((await embedded.query(sql)).rows);
        expect(numbers((await embedded.query(sql, { requiredText })).rows)).toEqual(expected);
        const { rows } = await embedded.query('select count(*)::varchar from edge_logs', { requiredText });
        skipped += records.length - Number(rows[0]?.[0]);
      }),
      { numRuns: 150, seed: 31 },
    );
    expect(skipped).toBeGreaterThan(10 * records.length);
  }, 120_000);
});

function validJson(json: string): string | undefined {
  try {
    JSON.parse(json);
    return json;
  } catch {
    return undefined;
  }
}
