import { expect, test } from 'vitest';
import { ROW_GROUP_ROWS as G } from '../../src/store/duckdb/checksum.ts';
import { partFileName } from '../../src/store/duckdb/part-file.ts';
import { Part } from '../../src/store/duckdb/parts.ts';
import { chooseParts } from '../../src/store/duckdb/rewriter.ts';

const MIB = 1024 * 1024;
const MIN_RUNS = 4;

interface PartOptions {
  readonly records?: number;
  readonly runs?: number;
  readonly mebibytes?: number;
  readonly largeMebibytes?: number;
}

/** The indexes of the chosen parts, smallest first. */
function choose(options: readonly PartOptions[], maxMebibytes = Number.POSITIVE_INFINITY): number[] {
  const parts = options.map(
    ({ records = 9, runs = 1, mebibytes = 1, largeMebibytes = 0 }, index) =>
      new Part({
        file: partFileName('edge', index + 1),
        kind: 'edge',
        ...{ records, runs, bytes: mebibytes * MIB, largeTextBytes: largeMebibytes * MIB },
        ...{ since: 0n, until: 0n, textBytes: 0, sha256: '' },
      }),
  );
  return chooseParts(parts, MIN_RUNS, maxMebibytes * MIB).map(part => parts.indexOf(part));
}

test.each<[string, readonly PartOptions[], number[]]>([
  ['no parts', [], []],
  ['three runs are too few', [{}, {}, {}], []],
  ['four runs are enough', [{}, {}, {}, {}], [0, 1, 2, 3]],
  ['four runs of one part are enough', [{ runs: 4 }], [0]],
  ['a part of one run is never chosen alone', [{ records: 9 * G }], []],
  [
    'a part with four times the records of the smaller ones is included',
    [{ runs: 4, records: 100 }, { records: 400 }],
    [0, 1],
  ],
  ['a part with more than that is left out', [{ runs: 4, records: 100 }, { records: 401 }], [0]],
  ['a larger part is left out whatever its age', [{ records: 401 }, { runs: 4, records: 100 }], [1]],
  [
    'each part is compared with all smaller ones together',
    [{ runs: 4, records: 100 }, { records: 400 }, { records: 2000 }],
    [0, 1, 2],
  ],
  ['the result has at most 128 row groups', [{ runs: 4, records: 100 * G }, { records: 29 * G }], [0]],
  [
    'larger parts are chosen if the smaller ones are too few',
    [{ records: 9 }, { records: 100, runs: 4 }],
    [1],
  ],
  [
    'large records of at most 64 MiB are merged',
    [16, 16, 16, 16, 16].map(largeMebibytes => ({ largeMebibytes })),
    [0, 1, 2, 3],
  ],
  [
    'a part with more than 64 MiB of large records is left out',
    [65, 16, 16, 16, 16].map(largeMebibytes => ({ largeMebibytes })),
    [1, 2, 3, 4],
  ],
])('%s', (_, parts, chosen) => {
  expect(choose(parts)).toEqual(chosen);
});

test('parts are merged only up to the maximum size of a part', () => {
  const parts = [{}, {}, {}, {}, {}, {}];
  expect(choose(parts, 5)).toEqual([0, 1, 2, 3, 4]);
  expect(choose(parts, 3)).toEqual([]);
  expect(choose([{ mebibytes: 20 }, ...parts], 4)).toEqual([1, 2, 3, 4]);
});
