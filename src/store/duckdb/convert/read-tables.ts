// Reads every table of an old store once: what it contains, or that it is damaged.
import { addContents, EMPTY, readContentBy, type TableContent } from '../checksum.ts';
import type { AfterBatch } from '../copy-records.ts';
import { startSql } from '../time-windows.ts';
import { type OldStore, type OldTable, recordsOf } from './old-store.ts';
import type { Spans } from './plan-parts.ts';

/** Errors that say nothing about the table that was read. */
const SYSTEM_ERROR = /^(Out of Memory|Interrupt|Connection) Error/;

export interface ReadTable extends OldTable {
  readonly spans: Spans;
  readonly content: TableContent;
}

/** A table that cannot be read, or differs from what was written. */
export interface DamagedTable extends OldTable {
  /** How many records it has; undefined if unknown. */
  readonly records: number | undefined;
  readonly problem: string;
}

export interface ReadTables {
  readonly readable: readonly ReadTable[];
  readonly damaged: readonly DamagedTable[];
}

/** `onCounted` is called with the number of records before they are read. Tables without records are left out. */
export async function readTables(
  store: OldStore,
  onCounted: (records: number) => void,
  afterBatch: AfterBatch,
): Promise<ReadTables> {
  const tables: (OldTable & { readonly records: number | undefined })[] = [];
  for (const table of await store.listTables()) {
    const records = await store.countRecords(table).catch(() => undefined);
    if (records === undefined) await store.reopen();
    if (records !== 0 || table.unverified !== undefined) tables.push({ ...table, records });
  }
  onCounted(tables.reduce((sum, { records = 0 }) => sum + records, 0));
  const readable: ReadTable[] = [];
  const damaged: DamagedTable[] = [];
  for (const table of tables)
    try {
      readable.push(await readTable(store, table, afterBatch));
    } catch (error) {
      const [problem = ''] = (error as Error).message.split('\n', 1);
      if (SYSTEM_ERROR.test(problem)) throw error;
      damaged.push({ ...table, problem });
      await store.reopen();
    }
  return { readable, damaged };
}

async function readTable(
  store: OldStore,
  table: OldTable & { readonly records: number | undefined },
  afterBatch: AfterBatch,
): Promise<ReadTable> {
  const from = recordsOf(table);
  const spans = await readContentBy(startSql(), store.connection, table.kind, from, afterBatch);
  const content = [...spans.values()].reduce(addContents, EMPTY);
  if (content.rows !== table.records)
    throw new Error(`only ${content.rows} of its ${table.records} records can be read`);
  if (!(await store.isSound(table))) throw new Error('its records differ from those that were written');
  return { ...table, spans, content };
}
