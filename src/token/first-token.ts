// Creates a token at the first startup, when there is no tokens file yet.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Clock } from '../system/clock.ts';
import { writeFileDurably } from '../system/files.ts';
import { ALL_SCOPES, createSecret, hashSecret } from './token.ts';
import { changeTokenFile } from './token-file.ts';

export interface FirstToken {
  readonly secret: string;
  /** Writes the secret to a file of mode 0600 and returns its path. Used if standard output is not a terminal. */
  writeToFile(): Promise<string>;
}

/** Creates a token with all scopes, unless the tokens file exists. */
export async function createFirstToken(tokensFile: string, clock: Clock): Promise<FirstToken | undefined> {
  if (existsSync(tokensFile)) return undefined;
  const secret = createSecret();
  const created_at = formatTimestamp(clock());
  await changeTokenFile(tokensFile, tokens => [
    ...tokens,
    { name: 'first', sha256: hashSecret(secret), scopes: ALL_SCOPES, created_at },
  ]);
  return {
    secret,
    async writeToFile() {
      const file = join(dirname(tokensFile), 'first-token');
      await writeFileDurably(file, `${secret}\n`);
      return file;
    },
  };
}
