// What a token is: a secret of which only the SHA-256 is kept, and the scopes it opens.
import { createHash, randomBytes } from 'node:crypto';

export interface Token {
  readonly name: string;
  /** Of the whole secret, in hexadecimal. */
  readonly sha256: string;
  readonly scopes: readonly string[];
}

export const ALL_SCOPES = ['query', 'ingest', 'metrics'] as const;

/** `dnd_` and 43 URL-safe characters: 256 random bits. */
export function makeSecret(): string {
  return `dnd_${randomBytes(32).toString('base64url')}`;
}

export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** A scope opens itself and what lies below it: `query` opens `query:logs.all`. */
export function allows(token: Token, scope: string): boolean {
  return token.scopes.some(held => scope === held || scope.startsWith(`${held}:`));
}
