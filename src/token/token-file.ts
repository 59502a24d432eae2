// Reads and changes tokens.json, which holds the hashes of the secrets, and creates the first token at the first startup. The file is
// created with mode 0600; a change keeps its owner and mode. The names of its fields, such as expires_at, are part of the on-disk
// format.
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import * as v from 'valibot';
import { OperatorError } from '../domain/errors.ts';
import { formatTimestamp, parseTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';
import { describeFileError } from '../system/file-access.ts';
import { createDirectory, writeFileDurably } from '../system/files.ts';
import { withFileLock } from '../system/lock.ts';
import { ALL_SCOPES, createSecret, hashSecret, isScope, type Token } from './token.ts';

const nonEmptyText = v.pipe(v.string(), v.nonEmpty());
const timestampText = v.pipe(
  v.string(),
  v.check(text => parseTimestamp(text) !== undefined),
);

const storedToken = v.strictObject({
  name: nonEmptyText,
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  scopes: v.pipe(v.array(v.pipe(v.string(), v.check(isScope))), v.nonEmpty()),
  projects: v.optional(v.pipe(v.array(nonEmptyText), v.nonEmpty())),
  expires_at: v.optional(timestampText),
  rate: v.optional(v.pipe(v.number(), v.finite(), v.gtValue(0))),
  tier: v.optional(nonEmptyText),
  redact_pii: v.optional(v.boolean()),
  created_at: timestampText,
});

const tokenFile = v.strictObject({ version: v.literal(1), tokens: v.array(storedToken) });

/** A token as stored in the file. */
export interface StoredToken extends Token {
  readonly created_at: string;
}

/** Returns the tokens of a file; an empty list if the file does not exist. */
export function readTokenFile(file: string): readonly StoredToken[] {
  try {
    return parseTokens(file, readFileSync(file, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw toOperatorError(`cannot read the tokens file ${file}`, file, error);
  }
}

/**
 * Reads, changes and replaces the file under a file lock, so that no concurrent change is lost. A process in another container does
 * not see the lock: if it has changed the file meanwhile, this starts again. Otherwise a revoked token could become valid again.
 */
export async function changeTokenFile(
  file: string,
  change: (tokens: readonly StoredToken[]) => readonly StoredToken[],
): Promise<void> {
  try {
    createDirectory(dirname(file));
    await withFileLock(file, async () => {
      while (!(await tryToChange(file, change)));
    });
  } catch (error) {
    throw toOperatorError(`cannot change the tokens file ${file}`, file, error);
  }
}

/** Returns false if the file has changed meanwhile. */
async function tryToChange(
  file: string,
  change: (tokens: readonly StoredToken[]) => readonly StoredToken[],
): Promise<boolean> {
  const before = readTokenFile(file);
  const content = { version: 1, tokens: change(before) };
  if (!v.is(tokenFile, content))
    throw new OperatorError(`${file}: not changed, because the new content would not be a valid tokens file`);
  const conflict = new Error('the file has changed');
  try {
    await writeFileDurably(file, `${JSON.stringify(content, undefined, 2)}\n`, {
      temporary: `${file}.${randomUUID()}.new`,
      beforeRename() {
        if (!isDeepStrictEqual(readTokenFile(file), before)) throw conflict;
      },
      keepOwner: true,
    });
    return true;
  } catch (error) {
    if (error === conflict) return false;
    throw error;
  }
}

export interface FirstToken {
  readonly secret: string;
  /** Writes the secret to a file of mode 0600 and returns its path. Used if standard output is not a terminal. */
  writeToFile(): Promise<string>;
}

/**
 * Creates a token with all scopes, unless the tokens file exists. Calls `show` before it writes the tokens file: if the process ends
 * in between, the next start creates and shows another token. In the other order, it could leave a valid token whose secret was
 * never shown.
 */
export async function createFirstToken(
  tokensFile: string,
  clock: Clock,
  show: (token: FirstToken) => void | Promise<void>,
): Promise<void> {
  if (existsSync(tokensFile)) return;
  const secret = createSecret();
  const created_at = formatTimestamp(clock());
  await show({ secret, writeToFile: () => writeSecret(join(dirname(tokensFile), 'first-token'), secret) });
  await changeTokenFile(tokensFile, tokens => [
    ...tokens,
    { name: 'first', sha256: hashSecret(secret), scopes: ALL_SCOPES, created_at },
  ]);
}

async function writeSecret(file: string, secret: string): Promise<string> {
  const directory = dirname(file);
  try {
    createDirectory(directory);
    await writeFileDurably(file, `${secret}\n`);
    return file;
  } catch (error) {
    throw toOperatorError(`cannot write the first token to ${file}`, directory, error);
  }
}

function parseTokens(file: string, text: string): readonly StoredToken[] {
  try {
    return v.parse(tokenFile, JSON.parse(text)).tokens;
  } catch {
    // The parser's own message could quote the content of the file.
    throw new OperatorError(`${file}: not a tokens file that this version can read`);
  }
}

/** Converts a system error, such as "EACCES: permission denied", to one line for the operator. Returns others unchanged. */
function toOperatorError(problem: string, file: string, error: unknown): unknown {
  const systemError = error as NodeJS.ErrnoException;
  if (systemError.code === undefined) return error;
  return new OperatorError(`${problem}: ${describeFileError(file, systemError)}`);
}
