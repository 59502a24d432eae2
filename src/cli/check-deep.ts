// dendro check --deep: reads every record of a data directory that no server uses, and reports what is damaged, by file and place.
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import type { ServeConfig } from '../config.ts';
import { type Damage, formatDamage } from '../domain/damage.ts';
import { OperatorError } from '../domain/errors.ts';
import { inspectFiles } from '../intake/inspect-files.ts';
import { hasOldStore, inspectStore } from '../store/open-store.ts';
import { inspectDataDirectory } from '../system/data-directory.ts';
import { lockDirectory } from '../system/lock.ts';
import { readTokenFile } from '../token/token-file.ts';
import type { Io } from './io.ts';
import { createProgressBar } from './terminal.ts';

/** For a data directory with a store that is not converted yet. */
export const OLD_STORE_LINE =
  'dendro.duckdb is the store of an earlier release, which was not checked; the next start converts it';

interface DeepFindings {
  readonly isOldStore: boolean;
  readonly records: { readonly stored: number; readonly spooled: number; readonly quarantined: number };
  readonly damages: readonly Damage[];
}

export async function checkDeep(config: ServeConfig, isJson: boolean, io: Io): Promise<void> {
  const { dataDirectory } = config.store;
  if (!existsSync(dataDirectory))
    throw new OperatorError(`there is no data directory ${dataDirectory}; name one with --data`);
  const lock = await lockDirectory(dataDirectory);
  let findings: DeepFindings;
  try {
    findings = await findDamages(config, io);
  } finally {
    lock.release();
  }
  print(findings, isJson, io);
  const { damages } = findings;
  if (damages.length > 0)
    throw new OperatorError(
      `${damages.length} damaged ${damages.length === 1 ? 'place' : 'places'} in ${dataDirectory}; nothing was changed. Keep a copy of the directory, and restore a backup or start the server, which keeps all sound records`,
    );
}

async function findDamages(config: ServeConfig, { stderr }: Io): Promise<DeepFindings> {
  const { store, storeName, tokensFile } = config;
  const bar = createProgressBar('check', stderr);
  try {
    const stored = await inspectStore(storeName, {
      ...store,
      onProgress: (bytes, total) => bar.update(bytes / Math.max(1, total), `${bytes} bytes of the store`),
    });
    const { spool, quarantine } = await inspectFiles(
      store.dataDirectory,
      file => bar.update(undefined, file),
      stored.durableUpTo,
    );
    return {
      isOldStore: storeName === 'duckdb' && (await hasOldStore(store.dataDirectory)),
      records: { stored: sumOf(stored.records), spooled: spool.records, quarantined: quarantine.records },
      damages: [
        ...stored.setAside,
        ...stored.damages,
        ...spool.damages,
        ...quarantine.damages,
        ...findReadDamage('format.json', () => inspectDataDirectory(store.dataDirectory)),
        ...findReadDamage(basename(tokensFile), () => readTokenFile(tokensFile)),
      ],
    };
  } finally {
    bar.clear();
  }
}

function sumOf(counts: ReadonlyMap<unknown, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Returns no damage if `read` succeeds, and one if it throws an OperatorError. */
function findReadDamage(file: string, read: () => void): Damage[] {
  try {
    read();
    return [];
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    return [{ file, place: '', problem: error.message }];
  }
}

function print({ isOldStore, records, damages }: DeepFindings, isJson: boolean, { stdout }: Io): void {
  if (isJson) {
    const findings = { records, damages, store_of_earlier_release: isOldStore };
    stdout.write(`${JSON.stringify(findings, undefined, 2)}\n`);
    return;
  }
  if (isOldStore) stdout.write(`${OLD_STORE_LINE}\n`);
  for (const damage of damages) stdout.write(`${formatDamage(damage)}\n`);
  const { stored, spooled, quarantined } = records;
  stdout.write(
    `read ${stored} stored, ${spooled} spooled and ${quarantined} quarantined records${damages.length === 0 ? '; no damage found' : ''}\n`,
  );
}
