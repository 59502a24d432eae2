// The very first start: nobody has a token yet, so one is made.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../clock.ts';
import { ALL_SCOPES, hashSecret, makeSecret } from './token.ts';
import { writePrivateFile, writeTokenFile } from './token-file.ts';

export interface FirstToken {
  readonly secret: string;
  /** Leaves the secret in a file of its own, mode 0600, for when there is no terminal to show it on. */
  leave(): string;
}

/** Makes a token with all scopes unless the tokens file exists. */
export function makeFirstToken(tokensFile: string, clock: Clock): FirstToken | undefined {
  if (existsSync(tokensFile)) return undefined;
  const secret = makeSecret();
  const createdAt = new Date(Number(clock() / 1000n)).toISOString();
  writeTokenFile(tokensFile, [
    { name: 'first', sha256: hashSecret(secret), scopes: ALL_SCOPES, created_at: createdAt },
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
