// Reads the rows of a Parquet file as JSON values. Uses a separate in-memory DuckDB that may open this file only.
import { readFile } from 'node:fs/promises';
import { isJsonObject } from '../system/parse-json.ts';
import { parseExactJson } from './exact-json.ts';
import { unwrapObject } from './json-object.ts';
import { type ParseResult, parseLine } from './parse.ts';

/** Streams the rows, so memory use does not depend on the file size. `onProgress` gets the fraction of rows read, 0 to 1. */
export async function* readParquet(
  path: string,
  onProgress: (fraction: number) => void,
): AsyncGenerator<readonly ParseResult[]> {
  // Imported here so that reading JSON does not load a native library.
  const { DuckDBInstance } = await import('@duckdb/node-api');
  const rowsSql = await readFile(new URL('./parquet-rows.sql', import.meta.url), 'utf8');
  const pattern = escapeGlob(path);
  const instance = await DuckDBInstance.create(':memory:', { memory_limit: '1GB' });
  try {
    const connection = await instance.connect();
    // Both are needed: DuckDB checks the pattern before it expands the pattern, and checks the path before it opens the file.
    await connection.run('SET allowed_paths = [$path, $pattern]', { path, pattern });
    await connection.run("SET TimeZone = 'UTC'");
    await connection.run('SET enable_external_access = false');
    await connection.run('SET lock_configuration = true');

    const fileMetadata = await connection.runAndReadAll('SELECT num_rows FROM parquet_file_metadata($path)', {
      path: pattern,
    });
    const rowCount = Number(fileMetadata.value(0, 0));
    const rows = await connection.stream(rowsSql, { path: pattern });
    let index = 0;
    for (
      let chunk = await rows.fetchChunk();
      chunk !== null && chunk.rowCount > 0;
      chunk = await rows.fetchChunk()
    ) {
      const batch = chunk.getColumnValues(0).map(row => parseRow(String(row), index++));
      onProgress(index / rowCount);
      yield batch;
    }
    // A stream that fails ends like a complete one, and the driver does not report the error.
    if (index < rowCount)
      throw new Error(`the file is damaged: only ${index} of ${rowCount} rows can be read`);
  } finally {
    instance.closeSync();
  }
}

/** Escapes a path, because DuckDB reads it as a glob pattern. In brackets, the characters *, ? and [ are literal. */
function escapeGlob(path: string): string {
  return path.replace(/[*?[]/g, '[$&]');
}

function parseRow(json: string, index: number): ParseResult {
  const parsed = parseLine(replaceNonFinite(json), index);
  if (!('value' in parsed) || !isJsonObject(parsed.value)) return parsed;
  // A row has every column of the file, so NULL means that the record does not have the field.
  const fields = Object.entries(parsed.value).filter(([, field]) => field !== null);
  return {
    index,
    value: Object.fromEntries(fields.map(([name, field]) => [name, toField(name, field)])),
  };
}

function toField(name: string, field: unknown): unknown {
  return name === 'metadata' && typeof field === 'string' ? parseMetadata(field) : field;
}

/** Metadata is often a text column that contains a JSON object, because not every Parquet writer has a JSON type. */
function parseMetadata(text: string): unknown {
  try {
    const value = parseExactJson(text);
    return unwrapObject(value) === undefined ? text : value;
  } catch {
    return text;
  }
}

// Matches, in a row of DuckDB's JSON, an escape, a quote, or a number that JSON cannot represent.
const QUOTE_ESCAPE_OR_NON_FINITE = /\\.|"|-?Infinity|NaN/g;

/**
 * Replaces the bare NaN and Infinity that DuckDB writes. NaN becomes null, because data frames use it for a missing number.
 * Infinity becomes a string.
 */
function replaceNonFinite(json: string): string {
  if (!/[:,[](?:NaN|-?Infinity)/.test(json)) return json;
  let inString = false;
  return json.replace(QUOTE_ESCAPE_OR_NON_FINITE, token => {
    if (token === '"') inString = !inString;
    if (inString || token === '"' || token.startsWith('\\')) return token;
    return token === 'NaN' ? 'null' : `"${token}"`;
  });
}
