// Writes a tokens file in a directory of its own with the code of the command line. The test gets the secrets.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecret, hashSecret, type Token } from '../../src/token/token.ts';
import { changeTokenFile, type StoredToken } from '../../src/token/token-file.ts';

/** The fields of a token that a test sets; the default scope is query. */
export type TokenSpec = Partial<Omit<Token, 'name' | 'sha256'>>;

export interface TestTokens<Name extends string> {
  readonly file: string;
  readonly secrets: Readonly<Record<Name, string>>;
  revoke(name: Name): Promise<void>;
  remove(): void;
}

export async function createTokens<Name extends string>(
  specs: Readonly<Record<Name, TokenSpec>>,
): Promise<TestTokens<Name>> {
  const { write, ...tokens } = prepareTokens(specs);
  await write();
  return tokens;
}

/** Like `createTokens`, but `write` writes the file. */
export function prepareTokens<Name extends string>(
  specs: Readonly<Record<Name, TokenSpec>>,
): TestTokens<Name> & { write(): Promise<void> } {
  const directory = mkdtempSync(join(tmpdir(), 'dendro-tokens-'));
  const file = join(directory, 'tokens.json');
  const names = Object.keys(specs) as Name[];
  const secrets = Object.fromEntries(names.map(name => [name, createSecret()])) as Record<Name, string>;
  return {
    file,
    secrets,
    write: () =>
      changeTokenFile(file, () => names.map(name => storedToken(name, secrets[name], specs[name]))),
    revoke: name => changeTokenFile(file, tokens => tokens.filter(token => token.name !== name)),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export function storedToken(name: string, secret: string, spec: TokenSpec = {}): StoredToken {
  return {
    name,
    sha256: hashSecret(secret),
    scopes: ['query'],
    created_at: '2026-11-01T00:00:00Z',
    ...spec,
  };
}
