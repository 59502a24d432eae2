// The tokens of a running server: read from their file and looked at again twice a second, so that making or revoking
// one takes effect within a second. A file that cannot be read never opens the door, nor shuts it: the last good set
// stays, and that is said loudly.
import { statSync } from 'node:fs';
import type { Observe } from '../observe/event.ts';
import type { Timer } from '../system/timer.ts';
import { ALL_SCOPES, hashSecret, type Token } from './token.ts';
import { readTokenFile } from './token-file.ts';
import { createTokenSet, type TokenSet } from './token-set.ts';

const LOOK_EVERY_MS = 500;

export interface WatchedTokens extends TokenSet {
  close(): void;
}

/** Throws where the file cannot be read at first; from then on it is only observed. */
export function watchTokens(
  file: string,
  apiKey: string | undefined,
  timer: Timer,
  observe: Observe,
): WatchedTokens {
  const own = apiKey === undefined ? [] : [apiKeyToken(apiKey)];
  let seen = stateOf(file);
  let lastFault = '';
  let tokens = createTokenSet([...readTokenFile(file), ...own]);
  let cancelLook = timer.after(LOOK_EVERY_MS, look);

  function look(): void {
    const state = stateOf(file);
    if (state !== seen) {
      try {
        if (state === MISSING) throw new Error(`${file}: is gone`);
        tokens = createTokenSet([...readTokenFile(file), ...own]);
        seen = state;
        lastFault = '';
        observe({ type: 'tokens_read', count: tokens.size });
      } catch (error) {
        // Tried again at the next look, and told once: the file may be fine, and the process short of descriptors.
        if (state !== lastFault) observe({ type: 'tokens_unreadable', error });
        lastFault = state;
      }
    }
    cancelLook = timer.after(LOOK_EVERY_MS, look);
  }

  return {
    find: secret => tokens.find(secret),
    findByHash: sha256 => tokens.findByHash(sha256),
    get size() {
      return tokens.size;
    },
    close: () => cancelLook(),
  };
}

const MISSING = 'missing';

/** Changes whenever the file does: it is always replaced, never written over. */
function stateOf(file: string): string {
  try {
    const { ino, size, mtimeMs, mode } = statSync(file);
    return `${ino} ${size} ${mtimeMs} ${mode}`;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? MISSING : `unreadable: ${code}`;
  }
}

function apiKeyToken(apiKey: string): Token {
  return { name: 'DENDRO_API_KEY', sha256: hashSecret(apiKey), scopes: ALL_SCOPES };
}
