import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';

// Names and phrases that were replaced by the usual terms of the field must not come back. The lists are explicit, and
// contain no everyday words. CONTRIBUTING.md has the glossary of the terms in use.

const RETIRED_IDENTIFIERS = [
  ...['HotRecords', 'SealedTable', 'SealedTables', 'sealedTables', 'SwapGate', 'UnderWay', 'underWay'],
  ...['FrozenBlock', 'FrozenBlocks', 'KnownRequest', 'KnownRequests', 'RequestNotes', 'NextNumbers'],
  ...['insertOrNarrow', 'Narrowing', 'GuessBrake', 'guessBrake', 'Spacing', 'LastUsedNotes', 'IngestTally'],
  ...['CheckedCall', 'CheckedCalls', 'checkedCalls', 'TokenCall', 'RequestCall', 'EndpointCall', 'QueryCall'],
  ...['Folding', 'foldBytes', 'Tidying', 'StoreWatch', 'storeWatch', 'liftFields', 'isStamped', 'insists'],
  ...[
    'Door',
    'Asked',
    'Ran',
    'ReaderPool',
    'jsonReply',
    'errorReply',
    'Urgency',
    'BodyThreads',
    'StoreCheck',
  ],
  ...['makeFolder', 'lockFolder', 'dataFolder', 'highestTier', 'findPatternFault', 'mergeNext'],
  ...['HotParts', 'MergeParts', 'FoldingParts', 'AnswerFormat', 'AskedEncoding', 'fetchAnswer', 'makeTokens'],
  ...['ClickHouseAddress', 'parseClickHouseAddress', 'answerRequest', 'takeLogs', 'describeApi'],
  ...['dendro_records_folded_total', 'dendro_records_refused_total', 'dendro_tidyings_total'],
  ...['dendro_batches_repeated_total', 'records_folded', 'record_refused', 'fold_failed', 'fold_recovered'],
  ...['seal_failed', 'spool_cut', 'store_unfit', 'store_fit', 'tidied', 'tidying_failed', 'records_taken'],
];

const RETIRED_FILE_NAMES = [
  ...['hot-records', 'sealed-tables', 'swap-gate', 'turns', 'under-way', 'frozen-blocks', 'known-requests'],
  ...[
    'request-notes',
    'insert-or-narrow',
    'saved-statement',
    'saved-question',
    'fitness',
    'stamped',
    'spacing',
  ],
  ...['guess-brake', 'lifted-fields', 'checked-calls', 'folder-lock', 'body-threads', 'weighted-list'],
  ...['answer-request', 'answer-format', 'store-check', 'store-address', 'durable-file', 'private-file'],
  ...['merging', 'tidying', 'folding', 'flight', 'log-tables', 'query-errors', 'own-folder'],
  ...['reader-pool', 'ingest-tally', 'log-piece', 'copy-in-order', 'shipped-record', 'reply', 'read-body'],
  ...['positionals', 'stop-signal', 'uuid-v7', 'valid-unicode'],
];

const RETIRED_PHRASES = [
  ...['anew', 'broken off', 'goes on', 'hands out', 'hand out', 'is handed', 'mended', 'mends', 'mending'],
  ...['to mend', 'dearer', 'at hand', 'whoever', 'tells of', 'tell of', 'told of', 'laid', 'lays'],
  ...['swap gate', 'guess brake', 'frozen block', 'sealed table', 'hot record', 'checked call', 'under way'],
];

/** History and the formats of version 0.1.0 contain the old names on purpose. */
const EXEMPT =
  /^(CHANGELOG\.md|docs\/decisions\/|test\/upgrade\/|test\/vocabulary\.test\.ts|package-lock\.json|bench\/results\/)/;
const TEXT = /\.(ts|mts|mjs|js|c|json|md|css|html|sql|ya?ml|conf|service|svg)$|Dockerfile|^\.ci\/|^bin\//;

const ROOT = join(import.meta.dirname, '..');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter(file => TEXT.test(file) && !EXEMPT.test(file));

function findLines(pattern: RegExp): string[] {
  return files.flatMap(file =>
    readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

describe('retired names and phrases', () => {
  test('every tracked text file is searched', () => {
    expect(files.length).toBeGreaterThan(200);
    expect(findLines(/\bexport class Memtables\b/)).toHaveLength(1);
  });

  test('no file contains a retired identifier', () => {
    expect(findLines(new RegExp(`\\b(${RETIRED_IDENTIFIERS.join('|')})\\b`))).toEqual([]);
  });

  test('no file has a retired name', () => {
    const names = files.filter(file => RETIRED_FILE_NAMES.includes(basename(file).split('.')[0] ?? ''));
    expect(names).toEqual([]);
  });

  test('no file contains a retired phrase', () => {
    expect(findLines(new RegExp(`\\b(${RETIRED_PHRASES.join('|')})\\b`, 'i'))).toEqual([]);
  });
});
