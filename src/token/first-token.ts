// The very first start: nobody has a token yet, so one is made.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import { formatTimestamp } from '../timestamp.ts';
import { writePrivateFile } from './private-file.ts';
import { ALL_SCOPES, hashSecret, makeSecret } from './token.ts';
import { changeTokenFile } from './token-file.ts';

export interface FirstToken {
  readonly secret: string;
  /** Leaves the secret in a file of its own, mode 0600, for when there is no terminal to show it on. */
  leave(): string;
}

/** Makes a token with all scopes unless the tokens file exists. */
export async function makeFirstToken(tokensFile: string, clock: Clock): Promise<FirstToken | undefined> {
  if (existsSync(tokensFile)) return undefined;
  const secret = makeSecret();
  const created_at = formatTimestamp(clock());
  await changeTokenFile(tokensFile, tokens => [
    ...tokens,
    { name: 'first', sha256: hashSecret(secret), scopes: ALL_SCOPES, created_at },
  ]);
  return {
    secret,
    leave() {
      const file = join(dirname(tokensFile), 'first-token');
      writePrivateFile(file, `${secret}\n`);
      return file;
    },
  };
}
