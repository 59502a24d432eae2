// The files that a data directory may have after a clean stop.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Not the `.new` of writeFileDurably, which the next write of the same file replaces. */
const TEMPORARY = /\.tmp(\.wal)?$/;

/**
 * Returns what is wrong: a temporary file, a part that the manifest does not name, a part that was set aside, or a file with
 * `erasedText`.
 */
export function findFileProblems(dataDirectory: string, erasedText?: string): string[] {
  const files = readdirSync(dataDirectory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name));
  const named = listNamedParts(dataDirectory);
  const isLeft = (file: string) =>
    TEMPORARY.test(file) || (file.includes('/parts/') && !named.has(basename(file)));
  const left = files.filter(isLeft).map(file => `${basename(file)} is left`);
  // The next server resumes an erasure whose end was not durable. erase.json.new is of an erasure that was not acknowledged.
  if (erasedText === undefined || existsSync(join(dataDirectory, 'erase.json'))) return left;
  const withText = files.filter(
    file => basename(file) !== 'erase.json.new' && readFileSync(file).includes(erasedText),
  );
  return [...left, ...withText.map(file => `${basename(file)} has text of the erased project`)];
}

function listNamedParts(dataDirectory: string): ReadonlySet<string> {
  const file = join(dataDirectory, 'manifest.json');
  if (!existsSync(file)) return new Set();
  const { parts } = JSON.parse(readFileSync(file, 'utf8')) as { parts: { file: string }[] };
  return new Set(parts.map(part => part.file));
}
