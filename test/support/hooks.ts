// Hooks of vitest that many files need. Call them before other hooks: what they start is ended last.
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { startTestApp, type TestApp } from './app.ts';
import { type EndpointFiles, writeEndpointFolders } from './custom-endpoints.ts';

/** Returns the path of a directory that is empty at the start of each test. */
export function useDirectory(): string {
  const path = join(tmpdir(), `dendro-test-${randomUUID()}`);
  beforeEach(() => void mkdirSync(path, { mode: 0o700 }));
  afterEach(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Returns an application that runs during all tests of the file or the group. */
export function useTestApp(...options: Parameters<typeof startTestApp>): TestApp {
  const app = {} as TestApp;
  beforeAll(async () => void Object.assign(app, await startTestApp(...options)));
  afterAll(() => app.close());
  return app;
}

/** Returns the path of a directory with these endpoint folders, which exists during all tests of the file or the group. */
export function useEndpointFolders(endpoints: Readonly<Record<string, EndpointFiles>>): string {
  const path = join(tmpdir(), `dendro-endpoints-${randomUUID()}`);
  beforeAll(() => {
    mkdirSync(path);
    writeEndpointFolders(endpoints, path);
  });
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
