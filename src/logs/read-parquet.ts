// Reads the rows of a Parquet file as JSON values, in an in-memory DuckDB of its own that may open this file and no other.
import { readFile } from 'node:fs/promises';
import { parseExactJson } from './exact-json.ts';
import { isJsonObject, unwrapObject } from './json-object.ts';
import { type Parsed, parseLine } from './parse.ts';

/** `onShare` is told which share of the rows has been read, from 0 to 1. Streams: memory does not grow with the file. */
export async function* readParquet(
  path: string,
  onShare: (share: number) => void,
): AsyncGenerator<readonly Parsed[]> {
  // Loaded here, since a native library has no place in a command that reads JSON.
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const rowsSql = await readFile(new URL('./parquet-rows.sql', import.meta.url), 'utf8');
  const pattern = literalPattern(path);
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: '1GB' });
  try {
    const connection = await instance.connect();
    await connection.run('SET allowed_paths = [$path, $pattern]', { path, pattern });
    await connection.run("SET TimeZone = 'UTC'");
    await connection.run('SET enable_external_access = false');
    await connection.run('SET lock_configuration = true');

    const counted = await connection.runAndReadAll('SELECT num_rows FROM parquet_file_metadata($path)', {
      path: pattern,
    });
    const rowCount = Number(counted.value(0, 0));
    const rows = await connection.stream(rowsSql, { path: pattern });
    let index = 0;
    for (
      let chunk = await rows.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await rows.fetchChunk()
    ) {
      const batch = chunk.getColumnValues(0).map(row => parseRow(String(row), index++));
      onShare(index / rowCount);
      yield batch;
    }
  } finally {
    instance.closeSync();
  }
}

/** DuckDB takes a path for a pattern; in brackets *, ? and [ stand for themselves. */
function literalPattern(path: string): string {
  return path.replace(/[*?[]/g, '[$&]');
}

function parseRow(json: string, index: number): Parsed {
  const parsed = parseLine(withoutNonFinite(json), index);
  if (!('value' in parsed) || !isJsonObject(parsed.value)) return parsed;
  // A row has all columns of its file; a NULL is a field that this record does not have.
  const fields = Object.entries(parsed.value).filter(([, field]) => field !== null);
  return {
    index,
    value: Object.fromEntries(fields.map(([name, field]) => [name, fieldOf(name, field)])),
  };
}

function fieldOf(name: string, field: unknown): unknown {
  if (typeof field !== 'string') return field;
  // DuckDB writes the offset of a time in UTC as +00, which is not RFC 3339.
  if (name === 'timestamp') return field.replace(/\+00$/, 'Z');
  return name === 'metadata' ? parseMetadata(field) : field;
}

/** Parquet has no JSON of its own: metadata is often a column of text that holds an object. */
function parseMetadata(text: string): unknown {
  try {
    const value = parseExactJson(text);
    return unwrapObject(value) === undefined ? text : value;
  } catch {
    return text;
  }
}

// In a row of DuckDB's JSON: a string with its escapes, one escape or one quote at a time, or what JSON has no number for.
const QUOTE_ESCAPE_OR_NON_FINITE = /\\.|"|-?Infinity|NaN/g;

/** DuckDB writes NaN and Infinity bare. NaN, a data frame's missing number, becomes null; Infinity becomes text. */
function withoutNonFinite(json: string): string {
  if (!/[:,[](?:NaN|-?Infinity)/.test(json)) return json;
  let inString = false;
  return json.replace(QUOTE_ESCAPE_OR_NON_FINITE, token => {
    if (token === '"') inString = !inString;
    if (inString || token === '"' || token.startsWith('\\')) return token;
    return token === 'NaN' ? 'null' : `"${token}"`;
  });
}
