// The text filter of a part: a second table in its file. A vector is 2,048 consecutive records, which DuckDB reads or skips as a whole.
// The filter says which short texts the messages and the metadata of each vector contain, so that a search reads only the vectors
// that can match. It may select a vector without the text, but never skips one with it. See docs/decisions/0032-text-index.md.
//
// A text has slots: one for each trigram of ASCII letters, digits and spaces. All trigrams of a hexadecimal or decimal id occur nearly
// everywhere, so six hexadecimal digits at an even position of a text have a slot, too.
import { setImmediate } from 'node:timers/promises';
import type { RequiredText } from '../required-text.ts';
import { LARGE_RECORD_BYTES } from './checksum.ts';
import type { AfterBatch } from './copy-records.ts';
import { BLOB, DuckDBBlobValue, type DuckDBConnection, DuckDBDataChunk, INTEGER } from './driver.ts';
import { messageOf } from './errors.ts';
import type { StoreConnection } from './run-long.ts';

const VECTOR_ROWS = 2048;
/** A slot has a mask with one bit for each vector of a group. */
const GROUP_VECTORS = 32;
const GROUP_ROWS = GROUP_VECTORS * VECTOR_ROWS;
const ALL_VECTORS = -1;
/** Smaller parts are read in full, so that small merges stay fast. */
export const MIN_FILTERED_RECORDS = GROUP_ROWS;

/** A trigram has 18 bits, 6 for each symbol. */
const TRIGRAM_SLOTS = 2 ** 18;
const DIGITS_SLOTS = 2 ** 16;
/** A row of the table has the masks of this many slots, of 4 bytes each. A search reads a few of a thousand rows or so of each group. */
const ROW_SLOTS = 64;
/** The slot of vectors that may contain any text. */
const ANY_TEXT = TRIGRAM_SLOTS + DIGITS_SLOTS;

/** The symbol of each byte. Both cases of a letter have the same symbol. Other characters have 0. */
const SYMBOLS = new Uint8Array(256);
for (const [index, character] of [...'0123456789abcdefghijklmnopqrstuvwxyz '].entries())
  for (const variant of [character, character.toUpperCase()]) SYMBOLS[variant.charCodeAt(0)] = index + 1;
const MAX_HEX_SYMBOL = 16;
/** The symbol of bytes with which a disguised character can begin (isDisguised). */
const MAYBE_DISGUISED = 63;
for (const byte of [0x5c, 0xc5, 0xe2]) SYMBOLS[byte] = MAYBE_DISGUISED;

/**
 * Tables of pairs and words of four bytes are faster than single bytes. For each pair of bytes: 12 bits with the symbols, 8 with the two hexadecimal digits, or the
 * bit NO_DIGITS, and one that says that a disguised character can begin here.
 */
const PAIRS = new Int32Array(2 ** 16);
const NO_DIGITS = 2 ** 8;
const NO_DIGITS_IN_ANY = NO_DIGITS * (1 + 2 ** 9 + 2 ** 18);
const HAS_DISGUISED = 2 ** 21;
for (const [first, symbol] of SYMBOLS.entries())
  for (const [second, next] of SYMBOLS.entries()) {
    const isHex = [symbol, next].every(each => each > 0 && each <= MAX_HEX_SYMBOL);
    const digits = isHex ? (symbol - 1) * 16 + next - 1 : NO_DIGITS;
    const flag = symbol === MAYBE_DISGUISED || next === MAYBE_DISGUISED ? HAS_DISGUISED : 0;
    PAIRS[second * 256 + first] = symbol * 64 + next + digits * 2 ** 12 + flag; // as a machine reads two bytes, the lower one first
  }

/** The texts of so many rows are read at once. Fewer cost more time to plan queries, and more were slower, too. */
const ROWS_AT_ONCE = 4 * VECTOR_ROWS;
/** If more of a part can match, it is read in full. */
const MAX_SHARE = 0.75;

/** The slots of texts, each with a mask of the vectors that have it. */
class SlotMasks {
  readonly #masks = new Int32Array(ANY_TEXT + ROW_SLOTS);

  /** `text`: a text in UTF-8, or several with a zero byte between them. This loop is a large part of the time of a compaction. */
  add(text: Uint8Array, mask: number): void {
    const bytes = new Uint8Array(Math.ceil(text.length / 4) * 4);
    bytes.set(text);
    const words = new Int32Array(bytes.buffer);
    const masks = this.#masks;
    const pairs = PAIRS; // V8 would read a constant of the module again for each word
    let symbols = 0; // the last four
    let digits = NO_DIGITS_IN_ANY; // the last three pairs
    for (let i = 0; i < words.length; i++) {
      const word = words[i] ?? 0;
      const first = pairs[word & 0xffff] ?? 0;
      const second = pairs[word >>> 16] ?? 0;
      symbols = ((symbols << 12) | (first & 0xfff)) & 0xffffff;
      masks[symbols >> 6] = (masks[symbols >> 6] ?? 0) | mask;
      masks[symbols & 0x3ffff] = (masks[symbols & 0x3ffff] ?? 0) | mask;
      symbols = ((symbols << 12) | (second & 0xfff)) & 0xffffff;
      masks[symbols >> 6] = (masks[symbols >> 6] ?? 0) | mask;
      masks[symbols & 0x3ffff] = (masks[symbols & 0x3ffff] ?? 0) | mask;
      digits = ((digits << 9) | ((first >> 12) & 0x1ff)) & 0x7ffffff;
      if ((digits & NO_DIGITS_IN_ANY) === 0) this.#addDigits(digits, mask);
      digits = ((digits << 9) | ((second >> 12) & 0x1ff)) & 0x7ffffff;
      if ((digits & NO_DIGITS_IN_ANY) === 0) this.#addDigits(digits, mask);
      if (((first | second) & HAS_DISGUISED) !== 0 && hasDisguised(bytes, 4 * i))
        masks[ANY_TEXT] = (masks[ANY_TEXT] ?? 0) | mask;
    }
  }

  /** Without the slots of trigrams that have other characters. */
  listSlots(): number[] {
    const slots: number[] = [];
    for (let slot = 0; slot < this.#masks.length; slot++)
      if (this.#masks[slot] !== 0 && (slot >= TRIGRAM_SLOTS || hasOnlyTextSymbols(slot))) slots.push(slot);
    return slots;
  }

  has(slot: number, mask: number): boolean {
    return ((this.#masks[slot] ?? 0) & mask) !== 0;
  }

  /** The rows with these slots: number and masks. */
  listRows(): [row: number, masks: DuckDBBlobValue][] {
    const rows = new Set(this.listSlots().map(slot => Math.floor(slot / ROW_SLOTS)));
    return [...rows].map(row => {
      const masks = this.#masks.slice(row * ROW_SLOTS, (row + 1) * ROW_SLOTS);
      return [row, new DuckDBBlobValue(new Uint8Array(masks.buffer))];
    });
  }

  #addDigits(digits: number, mask: number): void {
    const slot = TRIGRAM_SLOTS + (Math.imul(digits, 0x9e3779b1) >>> 16);
    this.#masks[slot] = (this.#masks[slot] ?? 0) | mask;
  }
}

function hasOnlyTextSymbols(trigram: number): boolean {
  const isText = (symbol: number) => symbol !== 0 && symbol !== MAYBE_DISGUISED;
  return isText(trigram >> 12) && isText((trigram >> 6) & 63) && isText(trigram & 63);
}

function hasDisguised(bytes: Uint8Array, start: number): boolean {
  return [0, 1, 2, 3].some(offset => isDisguised(bytes, start + offset));
}

/** Whether a search takes what begins here for a letter, digit or space: the long s, the Kelvin sign (for k), or an escape in JSON. */
function isDisguised(bytes: Uint8Array, index: number): boolean {
  const [first, second] = [bytes[index], bytes[index + 1]];
  if (first === 0xc5) return second === 0xbf;
  if (first === 0xe2) return second === 0x84 && bytes[index + 2] === 0xaa;
  if (first !== 0x5c || second !== 0x75) return false; // a backslash and u
  let code = 0;
  for (let i = index + 2; i < index + 6; i++) code = code * 16 + (SYMBOLS[bytes[i] ?? 0] ?? 0) - 1;
  return code === 0x17f || code === 0x212a || (SYMBOLS[code] ?? 0) % MAYBE_DISGUISED !== 0;
}

/**
 * Adds the filter to a database that has the table `records`, with the row numbers 0 to `records` - 1. Returns the checksum of the filter.
 */
export async function writeTextFilter(
  connection: StoreConnection,
  database: string,
  records: number,
  afterBatch: AfterBatch = async () => {},
): Promise<string> {
  const last = (await connection.runAndReadAll(`select max(rowid) from ${database}.records`)).value(0, 0);
  if (Number(last) !== records - 1) throw new Error('the row numbers of a part are not consecutive');
  await connection.run(
    `create table ${database}.text_filter (vector_group integer, slot_group integer, masks blob using compression uncompressed)`,
  );
  const appender = await connection.createAppender('text_filter', null, database);
  try {
    for (let start = 0; start < records; start += GROUP_ROWS) {
      const startedAt = performance.now();
      const end = Math.min(records, start + GROUP_ROWS);
      const group = await readGroup(connection, `${database}.records`, start, end);
      const rows = group.listRows().map(([row, masks]) => [start / GROUP_ROWS, row, masks]);
      for (let i = 0; i < rows.length; i += VECTOR_ROWS) {
        const chunk = DuckDBDataChunk.create([INTEGER, INTEGER, BLOB]);
        chunk.setRows(rows.slice(i, i + VECTOR_ROWS));
        appender.appendDataChunk(chunk);
      }
      await afterBatch(performance.now() - startedAt, end - start);
    }
  } finally {
    appender.closeSync();
  }
  return readFilterChecksum(connection, database);
}

export async function readFilterChecksum(connection: DuckDBConnection, database: string): Promise<string> {
  const sql = `select sum(hash(vector_group, slot_group, masks)::hugeint) from ${database}.text_filter`;
  return String((await connection.runAndReadAll(sql)).value(0, 0));
}

async function readGroup(
  connection: StoreConnection,
  table: string,
  start: number,
  end: number,
): Promise<SlotMasks> {
  const group = new SlotMasks();
  for (let first = start; first < end; first += ROWS_AT_ONCE)
    await readTexts(connection, table, first, Math.min(end, first + ROWS_AT_ONCE), group);
  return group;
}

/** DuckDB concatenates the texts of a vector, except those of large records. If it is short of memory, reads fewer rows at once. */
async function readTexts(
  connection: StoreConnection,
  table: string,
  start: number,
  end: number,
  group: SlotMasks,
): Promise<void> {
  const sql = `
    select rowid // ${VECTOR_ROWS}, encode(string_agg(event_message, chr(0))), encode(string_agg(metadata, chr(0)))
    from ${table} where rowid >= ${start} and rowid < ${end}
    group by 1, case when strlen(event_message) + strlen(metadata) >= ${LARGE_RECORD_BYTES} then rowid end`;
  const result = await connection.runLong(sql, {}).catch(error => {
    if (messageOf(error).startsWith('Out of Memory Error') && end - start > 1) return undefined;
    throw error;
  });
  if (result === undefined) {
    const middle = Math.ceil((start + end) / 2);
    await readTexts(connection, table, start, middle, group);
    return readTexts(connection, table, middle, end, group);
  }
  for (let chunk = await result.fetchChunk(); chunk?.rowCount; chunk = await result.fetchChunk()) {
    const columns = [0, 1, 2].map(index => chunk.getColumnVector(index));
    for (let row = 0; row < chunk.rowCount; row++) {
      const [vector, ...texts] = columns.map(column => column.getItem(row));
      for (const text of texts)
        group.add((text as DuckDBBlobValue).bytes, 1 << (Number(vector) % GROUP_VECTORS));
      await setImmediate(); // other work of this thread
    }
  }
}

interface FilteredPart {
  readonly alias: string;
  readonly entry: { readonly records: number; readonly hasTextFilter?: boolean | undefined };
}

/** Finds out which vectors of parts the queries of one search need. */
export class TextSearch {
  readonly #slots = new Set<number>();
  readonly #select: SelectVectors;
  /** For each part, a bit for each of its vectors; undefined: it is read in full. */
  readonly #vectors = new Map<object, string | undefined>();

  constructor(required: RequiredText) {
    this.#select = compile(required, this.#slots);
  }

  /** A condition on the rows of a part, `false` if none can match, or undefined if nearly all can. Only after `read`. */
  conditionOn(part: object): string | undefined {
    const bits = this.#vectors.get(part);
    if (bits === undefined) return undefined;
    return bits.includes('1') ? `get_bit('${bits}'::bit, (rowid // ${VECTOR_ROWS})::int) = 1` : 'false';
  }

  /** Reads the filters of these parts. If that fails, the parts are read in full. */
  async read(connection: DuckDBConnection, parts: readonly FilteredPart[]): Promise<void> {
    const unknown = parts.filter(part => part.entry.hasTextFilter === true && !this.#vectors.has(part));
    if (unknown.length === 0 || this.#slots.size === 0) return;
    const rows = new Set([ANY_TEXT, ...this.#slots].map(slot => Math.floor(slot / ROW_SLOTS)));
    const queries = unknown.map(
      ({ alias }, index) =>
        `select ${index}, vector_group, slot_group, masks from ${alias}.text_filter where slot_group in (${[...rows]})`,
    );
    const result = await connection.runAndReadAll(queries.join(' union all ')).catch(() => undefined);
    if (result === undefined) return;
    const found = new Map<string, Buffer>();
    for (const [part, group, row, masks] of result.getRows())
      found.set(`${part} ${group} ${row}`, Buffer.from((masks as DuckDBBlobValue).bytes));
    for (const [index, part] of unknown.entries()) {
      let bits = '';
      for (let group = 0; group * GROUP_ROWS < part.entry.records; group++) {
        const mask = this.#select(slot => {
          const masks = found.get(`${index} ${group} ${Math.floor(slot / ROW_SLOTS)}`);
          return masks?.readInt32LE((slot % ROW_SLOTS) * 4) ?? 0;
        });
        for (let bit = 0; bit < GROUP_VECTORS; bit++) bits += (mask >>> bit) & 1;
      }
      const needed = bits.replaceAll('0', '').length;
      this.#vectors.set(part, needed * VECTOR_ROWS > part.entry.records * MAX_SHARE ? undefined : bits);
    }
  }
}

type SelectVectors = (maskOf: (slot: number) => number) => number;

/** Adds the slots that the returned function needs to `slots`. */
function compile(required: RequiredText, slots: Set<number>): SelectVectors {
  if ('text' in required) {
    // In a record, the text is at an even or at an odd position.
    const masks = new SlotMasks();
    masks.add(Buffer.from(required.text), 1);
    masks.add(Buffer.from(`\0${required.text}`), 2);
    const own = required.text.length < 3 ? [] : masks.listSlots();
    const alternatives = [1, 2].map(mask => own.filter(slot => masks.has(slot, mask)));
    for (const slot of own) slots.add(slot);
    return maskOf =>
      alternatives.reduce(
        (any, own) => any | own.reduce((mask, slot) => mask & maskOf(slot), ALL_VECTORS),
        maskOf(ANY_TEXT),
      );
  }
  if ('all' in required) {
    const all = required.all.map(each => compile(each, slots));
    return maskOf => all.reduce((mask, select) => mask & select(maskOf), ALL_VECTORS);
  }
  const any = required.any.map(each => compile(each, slots));
  return maskOf => any.reduce((mask, select) => mask | select(maskOf), 0);
}
