// tokens.json: the tokens of a data directory, hashed, mode 0600, replaced as a whole so that no reader sees half a file.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { z } from 'zod';
import { OperatorError } from '../errors.ts';
import type { Token } from './token.ts';

const tokenFile = z.strictObject({
  version: z.literal(1),
  tokens: z.array(
    z.strictObject({
      name: z.string().min(1),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      scopes: z.array(z.string()),
      created_at: z.iso.datetime(),
    }),
  ),
});

/** A token as the file keeps it. */
export interface StoredToken extends Token {
  readonly created_at: string;
}

/** The tokens of a file; none if there is no file. */
export function readTokenFile(file: string): readonly StoredToken[] {
  if (!existsSync(file)) return [];
  try {
    return tokenFile.parse(JSON.parse(readFileSync(file, 'utf8'))).tokens;
  } catch {
    throw new OperatorError(`${file}: is not a tokens file that this version can read`);
  }
}

export function writeTokenFile(file: string, tokens: readonly StoredToken[]): void {
  writePrivateFile(file, `${JSON.stringify({ version: 1, tokens }, undefined, 2)}\n`);
}

/** Written aside, flushed, then renamed over the old one. */
export function writePrivateFile(file: string, content: string): void {
  const draft = `${file}.${process.pid}.tmp`;
  const descriptor = openSync(draft, 'w', 0o600);
  try {
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
}
