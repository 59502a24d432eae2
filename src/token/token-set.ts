// The tokens that open the doors at one moment.
import { timingSafeEqual } from 'node:crypto';
import { hashSecret, type Token } from './token.ts';

export interface TokenSet {
  readonly size: number;
  /** The token whose secret this is, expired or not; or undefined. */
  find(secret: string): Token | undefined;
  /** The token with this hash of its secret. */
  findByHash(sha256: string): Token | undefined;
}

/**
 * Looks a secret up by its hash. An attacker cannot choose the bits of a hash, so the look-up's time tells nothing of
 * use, and the last word is a comparison in constant time.
 */
export function createTokenSet(tokens: readonly Token[]): TokenSet {
  const byHash = new Map(tokens.map(token => [token.sha256, { token, hash: Buffer.from(token.sha256) }]));
  const given = Buffer.alloc(64); // one for all look-ups: a new one for each shows in the time of a cached hit
  return {
    size: tokens.length,
    find(secret) {
      const hash = hashSecret(secret);
      const known = byHash.get(hash);
      if (known === undefined) return undefined;
      given.write(hash, 'latin1');
      return timingSafeEqual(known.hash, given) ? known.token : undefined;
    },
    findByHash: sha256 => byHash.get(sha256)?.token,
  };
}
