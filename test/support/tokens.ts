// Writes a tokens file for tests: tokens with given scopes, whose secrets the test gets.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writePrivateFile } from '../../src/system/files.ts';
import { createSecret, hashSecret } from '../../src/token/token.ts';

export interface TestTokens<Name extends string> {
  readonly file: string;
  readonly secrets: Readonly<Record<Name, string>>;
  remove(): void;
}

/** Writes one token for each entry of name and scopes. */
export function writeTestTokens<Name extends string>(
  scopes: Readonly<Record<Name, readonly string[]>>,
): TestTokens<Name> {
  const directory = mkdtempSync(join(tmpdir(), 'dendro-tokens-'));
  const file = join(directory, 'tokens.json');
  const names = Object.keys(scopes) as Name[];
  const secrets = Object.fromEntries(names.map(name => [name, createSecret()])) as Record<Name, string>;
  const tokens = names.map(name => ({
    name,
    sha256: hashSecret(secrets[name]),
    scopes: scopes[name],
    created_at: '2026-11-01T00:00:00Z',
  }));
  writePrivateFile(file, JSON.stringify({ version: 1, tokens }));
  return { file, secrets, remove: () => rmSync(directory, { recursive: true, force: true }) };
}
