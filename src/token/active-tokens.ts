// The tokens that a running server accepts: those of the tokens file and of the environment. The file is checked
// twice a second, so that creating or revoking a token takes effect within 1 s. If the file cannot be read, the last valid set
// stays active and the error is logged.
import { randomInt, timingSafeEqual } from 'node:crypto';
import type { Observe } from '../observe/event.ts';
import { MISSING, readFileVersion } from '../system/file-version.ts';
import { every, type Timer } from '../system/timer.ts';
import { hashSecret, type Token } from './token.ts';
import { readTokenFile } from './token-file.ts';

export interface TokenSet {
  readonly list: readonly Token[];
  /** The token with this secret, expired or not; undefined if there is none. */
  find(secret: string): Token | undefined;
}

/**
 * Finds tokens by the hash of the secret. An attacker cannot choose the bits of a hash, so the time of the lookup reveals
 * nothing useful. The final comparison takes constant time.
 *
 * A secret that was found before is found by a checksum, because hashing takes a tenth of the time of a cache hit. The checksum
 * has a random seed, so that nobody can choose two secrets with the same one.
 */
export function createTokenSet(tokens: readonly Token[]): TokenSet {
  const byHash = new Map(tokens.map(token => [token.sha256, { token, hash: Buffer.from(token.sha256) }]));
  const found = new Map<number, { readonly secret: string; readonly token: Token }>();
  const seed = randomInt(2 ** 32);
  return {
    list: tokens,
    find(secret) {
      const checksum = computeChecksum(secret, seed);
      const known = found.get(checksum);
      if (known !== undefined && isSameSecret(known.secret, secret)) return known.token;
      const hash = hashSecret(secret);
      const entry = byHash.get(hash);
      if (entry === undefined || !timingSafeEqual(entry.hash, Buffer.from(hash))) return undefined;
      found.set(checksum, { secret, token: entry.token });
      return entry.token;
    },
  };
}

/** FNV-1a. */
function computeChecksum(text: string, seed: number): number {
  let checksum = seed;
  for (let index = 0; index < text.length; index++)
    checksum = Math.imul(checksum ^ text.charCodeAt(index), 0x01000193);
  return checksum;
}

/** In constant time, so that response times tell nothing about the secret of another client. */
function isSameSecret(one: string, other: string): boolean {
  let difference = one.length ^ other.length;
  for (let index = 0; index < one.length; index++)
    difference |= one.charCodeAt(index) ^ other.charCodeAt(index);
  return difference === 0;
}

/** A token whose secret is the value of an environment variable. */
export interface EnvironmentKey {
  /** The name of the variable. */
  readonly name: string;
  readonly secret: string;
  readonly scopes: readonly string[];
}

export interface ActiveTokens extends TokenSet {
  /** Stops checking the file. */
  close(): void;
}

const CHECK_EVERY_MS = 500;

/** Throws if the file cannot be read at startup. Later errors are reported as events. */
export function watchTokens(
  file: string,
  environmentKeys: readonly EnvironmentKey[],
  timer: Timer,
  observe: Observe,
): ActiveTokens {
  const environmentTokens = environmentKeys.map(
    ({ name, secret, scopes }): Token => ({ name, sha256: hashSecret(secret), scopes }),
  );
  const readTokens = () => createTokenSet([...readTokenFile(file), ...environmentTokens]);
  let loadedVersion = readFileVersion(file);
  let failedVersion = '';
  let tokens = readTokens();

  const check = () => {
    const version = readFileVersion(file);
    if (version === loadedVersion) return;
    try {
      if (version === MISSING) throw new Error(`${file}: the file no longer exists`);
      tokens = readTokens();
      loadedVersion = version;
      failedVersion = '';
      observe({ type: 'tokens_read', count: tokens.list.length });
    } catch (error) {
      // Every check retries, because the cause may be elsewhere, such as too many open files. The error is reported once.
      if (version !== failedVersion) observe({ type: 'tokens_unreadable', error });
      failedVersion = version;
    }
  };
  const job = every(timer, CHECK_EVERY_MS, check);

  return {
    find: secret => tokens.find(secret),
    get list() {
      return tokens.list;
    },
    close: () => void job.stop(),
  };
}
