// Creates a token at the first startup, when there is no tokens file yet.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';
import { describeFileError } from '../system/file-access.ts';
import { createDirectory, writeFileDurably } from '../system/files.ts';
import { ALL_SCOPES, createSecret, hashSecret } from './token.ts';
import { changeTokenFile } from './token-file.ts';

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
    const reason = describeFileError(directory, error as NodeJS.ErrnoException);
    throw new OperatorError(`cannot write the first token to ${file}: ${reason}`);
  }
}
