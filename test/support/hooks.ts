// Hooks of vitest that many files need. Call them before other hooks: what they start is ended last.
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

/** Returns the path of a directory that is empty at the start of each test. */
export function useDirectory(): string {
  const path = join(tmpdir(), `dendro-test-${randomUUID()}`);
  beforeEach(() => void mkdirSync(path, { mode: 0o700 }));
  afterEach(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
