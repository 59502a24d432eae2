import { chmodSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { createTempDirectory, PROCESS_API_KEY, startServer } from '../support/process.ts';

describe('a data directory that others can read', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let umask: number;
  beforeEach(() => {
    directory = createTempDirectory();
    chmodSync(directory.path, 0o755);
    umask = process.umask(0o022); // the program inherits it
  });
  afterEach(() => {
    process.umask(umask);
    directory.remove();
  });

  // A temporary file can disappear meanwhile.
  const modes = () =>
    readdirSync(directory.path, { recursive: true, withFileTypes: true }).map(entry => {
      const file = join(entry.parentPath, entry.name);
      return [
        file.slice(directory.path.length + 1),
        ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o077).toString(8),
      ];
    });

  test('contains only private files while a server runs', async () => {
    const env = { DENDRO_API_KEY: PROCESS_API_KEY };
    const server = await startServer(['--data', directory.path], { env });
    try {
      const body = '{"project":"p","message":"x"}\n{"message":"without a project"}\n';
      const headers = { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' };
      const url = `${server.internalUrl}/api/logs?source_name=edge`;
      expect((await fetchResponse(url, { method: 'POST', headers, body })).status).toBe(200);
      await expect.poll(() => modes().map(([file]) => file)).toContain('quarantine.ndjson');
      expect(modes().filter(([, mode]) => mode !== '0')).toEqual([]);
      expect(modes()).toContainEqual(['dendro.duckdb', '0']);
    } finally {
      await server.stop();
    }
  });
});
