// Reads a file that the operator writes: YAML with a schema. Throws OperatorError, with one line that names the file, the key, the
// problem and the line.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  LineCounter,
  type ParsedNode,
  parseDocument,
} from 'yaml';
import { OperatorError } from '../domain/errors.ts';
import { MAX_DEFINITION_BYTES } from '../domain/limits.ts';
import { describeFileError } from '../system/file-access.ts';
import type { DefinitionProblem } from './parameter-definition.ts';

/** `read` validates the parsed content, and returns the value or the first problem. */
export function readYamlFile<T extends object>(
  file: string,
  read: (content: unknown) => T | { readonly problem: DefinitionProblem },
): T {
  const lines = new LineCounter();
  const text = readText(file, MAX_DEFINITION_BYTES);
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw new OperatorError(`${file}: ${error.message} at line ${line}, column ${col}`);
  }
  const value = read(toContent(file, document));
  if (!('problem' in value)) return value;
  const { path, message } = value.problem;
  if (path.length === 0)
    throw new OperatorError(`${file}: ${document.contents === null ? 'is empty' : message}`);
  const { line } = lines.linePos(findOffset(document, path));
  throw new OperatorError(`${file}: ${path.join('.')}: ${message} at line ${line}`);
}

function toContent(file: string, document: Document.Parsed): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw new OperatorError(`${file}: ${(error as Error).message}`); // an alias without a target, or too many of them
  }
}

/** Where a key is in the file, or its nearest parent that is there. */
function findOffset(document: Document.Parsed, path: readonly string[]): number {
  let offset = 0;
  let parent: unknown = document.contents;
  for (const key of path) {
    const collection = isAlias(parent) ? parent.resolve(document) : parent;
    if (!isCollection(collection)) break;
    const keyNode = isMap<ParsedNode>(collection)
      ? collection.items.find(pair => isScalar(pair.key) && String(pair.key.value) === key)?.key
      : undefined;
    parent = collection.get(keyNode ?? Number(key), true);
    offset = (keyNode ?? (parent as ParsedNode | undefined))?.range?.[0] ?? offset;
  }
  return offset;
}

export function readText(file: string, maxBytes: number): string {
  try {
    return readRegularFile(file, maxBytes);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    const systemError = error as NodeJS.ErrnoException;
    throw new OperatorError(
      systemError.code === 'ENOENT'
        ? `${file}: is missing`
        : `${file}: cannot be read: ${describeFileError(file, systemError)}`,
    );
  }
}

/** Unlike readFileSync, it does not wait for the writer of a FIFO, and reads no more than it may return. */
function readRegularFile(file: string, maxBytes: number): string {
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!fstatSync(descriptor).isFile()) throw new OperatorError(`${file}: is not a regular file`);
    const data = Buffer.allocUnsafe(maxBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0; length += read)
      read = readSync(descriptor, data, length, data.length - length, null);
    if (length > maxBytes) throw new OperatorError(`${file}: is larger than ${maxBytes / 1024} KiB`);
    return data.toString('utf8', 0, length);
  } finally {
    closeSync(descriptor);
  }
}
