// The tokens that open the doors of a running server.
import { timingSafeEqual } from 'node:crypto';
import { hashSecret, type Token } from './token.ts';

export interface TokenSet {
  /** The token whose secret this is, or undefined. */
  find(secret: string): Token | undefined;
}

/**
 * Looks a secret up by its hash. An attacker cannot choose the bits of a hash, so the look-up's time tells nothing of
 * use, and the last word is a comparison in constant time.
 */
export function makeTokenSet(tokens: readonly Token[]): TokenSet {
  const byHash = new Map(tokens.map(token => [token.sha256, token]));
  return {
    find(secret) {
      const hash = hashSecret(secret);
      const token = byHash.get(hash);
      if (token === undefined) return undefined;
      return timingSafeEqual(Buffer.from(token.sha256), Buffer.from(hash)) ? token : undefined;
    },
  };
}
