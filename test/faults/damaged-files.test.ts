// Damages one file of a data directory at a time: a byte that changes, a file that is cut, empty or missing. The program may report
// the damage at the start or in a query. What it must not do is lose records without a word, or those of another part.
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { fetchResponse } from '../support/app.ts';
import { isFullSize, reportFault, sized } from '../support/fault-report.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, spawnDendro } from '../support/process.ts';
import { SEED } from '../support/seed.ts';
import { Ledger } from './load.ts';
import { kill, serve } from './server.ts';

/** Of each file. The quick size has one of the other damages, chosen at random. */
const CHANGED_BYTES = sized(1, 40);
const ENDPOINTS = join(import.meta.dirname, '../upgrade/endpoints');
const ARGS = ['--endpoints', ENDPOINTS];
const SHAPE = { kinds: ['edge', 'auth'], records: [100, 300] } as const;

const random = new Random(SEED);
const directory = createTempDirectory();
const original = join(directory.path, 'original');
let contents: Contents;
let files: string[];

type Contents = Record<string, { readonly count: number; readonly digest: string }>;

/** Creates a data directory with records in parts, records in the spool, tokens and quarantined records. */
async function createOriginal(): Promise<void> {
  const token = ['token', 'create', '--name', 'a', '--scope', 'query', '--data', original];
  expect((await spawnDendro(token)).code).toBe(0);
  const ledger = new Ledger();
  for (let part = 0; part < 4; part++) {
    const batch = ledger.createBatch(SHAPE);
    const file = join(directory.path, `${batch.number}.ndjson.gz`);
    writeFileSync(file, batch.body());
    const ingest = ['ingest', file, '--source', batch.kind, '--data', original];
    expect((await spawnDendro(ingest)).code).toBe(0);
    batch.acknowledged = true;
  }
  const server = await serve(original, ARGS);
  for (let batch = 0; batch < 6; batch++) await ledger.send(server.internalUrl, ledger.createBatch(SHAPE));
  const invalid = {
    method: 'POST',
    body: '[{"message":"no project"}]',
    headers: { 'X-API-KEY': PROCESS_API_KEY },
  };
  await fetchResponse(`${server.internalUrl}/api/logs?source_name=edge`, invalid);
  const countRecords = async () => {
    contents = (await readContents(server)) ?? {};
    return Object.values(contents).reduce((sum, { count }) => sum + count, 0);
  };
  await expect.poll(countRecords).toBe(ledger.acknowledgedRecords);
  await kill(server);
  files = readdirSync(original, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name).slice(original.length + 1));
  const some = ['manifest.json', 'parts/edge-000001.duckdb', 'tokens.json', 'spool/000000000001.spool'];
  expect(files).toEqual(expect.arrayContaining(some));
}
afterAll(() => directory.remove());

/** Undefined if the query fails. */
async function readContents(server: ServerProcess): Promise<Contents | undefined> {
  const url = `${server.url}/api/endpoints/query/upgrade.contents?project=any`;
  const { status, rows } = await fetchResponse(url, { headers: { 'X-API-KEY': PROCESS_API_KEY } });
  return status === 200 ? Object.fromEntries(rows.map(({ kind, ...rest }) => [kind, rest])) : undefined;
}

/** Starts the program on a copy with one damaged file. Returns what the operator sees, and how many records are missing. */
async function openDamaged(name: string, damage: (path: string) => void) {
  const copy = join(directory.path, 'copy');
  rmSync(copy, { recursive: true, force: true });
  cpSync(original, copy, { recursive: true });
  damage(join(copy, name));
  const server = await serve(copy, ARGS).catch((error: Error) => error);
  if (server instanceof Error) {
    const isOneLine = /^exited with 1: dendro: [^\n]+\n$/.test(server.message);
    return { seen: isOneLine ? 'exit 1 with one line' : `UNCLEAR EXIT: ${server.message}`, missing: 0 };
  }
  try {
    const found = await readContents(server);
    const stderr = server.stderr();
    if (/SPOOL (DAMAGED|INCOMPLETE)/.test(stderr))
      return { seen: 'start with a report of the loss', missing: 0 };
    if (found === undefined) return { seen: 'UNCLEAR: queries fail', missing: 0 };
    const damagedKind = /PART (\w+)-\d+\.duckdb WAS SET ASIDE/.exec(stderr)?.[1];
    if (damagedKind !== undefined)
      return { seen: 'start with a report of the damaged part', missing: countMissing(found, damagedKind) };
    const isError = /"level":"error"/.test(stderr);
    const missing = countMissing(found);
    if (missing > 0) return { seen: 'start WITHOUT A REPORT OF THE LOSS', missing };
    return { seen: isError ? 'start with an error in the log' : 'start with every record', missing };
  } finally {
    await kill(server);
  }
}

/** Counts the missing records, without those of `damagedKind`. */
function countMissing(found: Contents, damagedKind?: string): number {
  const missing = Object.entries(contents).map(([kind, { count, digest }]) =>
    kind === damagedKind || found[kind]?.digest === digest
      ? 0
      : Math.max(1, count - (found[kind]?.count ?? 0)),
  );
  return missing.reduce((sum, each) => sum + each, 0);
}

function changeByte(path: string): void {
  const bytes = readFileSync(path);
  const at = Math.floor(random.next() * bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random.next() * 8));
  writeFileSync(path, bytes);
}

test('a damaged file is reported by name or has no effect, and no record disappears without a report', async () => {
  await createOriginal();
  const findings: string[] = [];
  for (const name of files) {
    const damages: [string, (path: string) => void][] = Array.from({ length: CHANGED_BYTES }, () => [
      'changed byte',
      changeByte,
    ]);
    // The end of a spool that is cut is like a write that was never finished, which is not reported.
    if (!name.endsWith('.spool')) {
      damages.push(['cut', path => truncateSync(path, Math.floor(readFileSync(path).length / 2))]);
      damages.push(['empty', path => truncateSync(path)]);
      damages.push(['missing', path => rmSync(path)]);
    }
    const other = CHANGED_BYTES + Math.floor(random.next() * (damages.length - CHANGED_BYTES));
    const chosen = isFullSize
      ? damages
      : damages.filter((_, index) => index < CHANGED_BYTES || index === other);
    for (const [kind, damage] of chosen) {
      const { seen, missing } = await openDamaged(name, damage);
      reportFault({ fault: 'damaged files', runs: 1, outcome: seen, lost: missing, duplicated: 0 });
      findings.push(`${name}, ${kind}: ${seen}`);
    }
  }
  console.info([...new Set(findings)].join('\n'));
  expect(findings.filter(finding => finding.includes('UNCLEAR'))).toEqual([]);
});
