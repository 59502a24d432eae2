// Opens a data directory with the real program, and reads over HTTP what is stored in it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROCESS_API_KEY, startServer } from '../support/process.ts';
import { type CheckResult, namesFileAndRemedy } from './check-state.ts';
import { findFileProblems } from './files.ts';
import { STORED_BATCHES_SQL } from './ledger.ts';
import { RETENTION_DAYS, secretOf } from './workload.ts';

const DEFINITION = `id: 4d0f6d0a-6a0e-4a53-9f0a-0f3c7b1f6f11
name: crash.stored-batches
description: The batches of the crash simulator.
reads: edge
parameters: {}
columns:
  number: { type: integer, description: Number of the batch. }
  records: { type: integer, description: Stored records. }
  distinct: { type: integer, description: Different ids. }
  intact: { type: integer, description: Records with the message that was sent. }
max_rows: 1000
cache: none
`;

/** Writes the endpoint that `checkWithProgram` calls to a new directory. */
export function writeEndpoint(directory: string): void {
  const folder = join(directory, 'crash.stored-batches');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'endpoint.yaml'), DEFINITION);
  writeFileSync(join(folder, 'duckdb.sql'), STORED_BATCHES_SQL);
}

export async function checkWithProgram(
  dataDirectory: string,
  endpoints: string,
  tokenNames: readonly string[],
  erasedText: string | undefined,
): Promise<CheckResult> {
  const args = ['--data', dataDirectory, '--endpoints', endpoints, '--retention-days', `${RETENTION_DAYS}`];
  try {
    const server = await startServer(args, { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    const get = (path: string, key: string) =>
      fetch(`${server.url}${path}`, { headers: { 'X-API-KEY': key } });
    try {
      const response = await get('/api/endpoints/query/crash.stored-batches', PROCESS_API_KEY);
      const { result } = (await response.json()) as { result: Record<string, number>[] };
      const batches = result.map(({ number = 0, records = 0, distinct = 0, intact = 0 }) => ({
        ...{ number, records, distinct, intact },
      }));
      const tokens: string[] = [];
      for (const name of tokenNames)
        if ((await get('/api/endpoints', secretOf(name))).status !== 401) tokens.push(name);
      const { code } = await server.stop();
      if (code !== 0) return { error: `the server stopped with exit code ${code}`, isClear: false };
      const fileProblems = findFileProblems(dataDirectory, erasedText);
      return { contents: [{ batches, tokens, fileProblems }] };
    } finally {
      server.signal('SIGKILL');
      await server.ended;
    }
  } catch (error) {
    const { message } = error as Error;
    const line = /^dendro: .*$/m.exec(message)?.[0];
    return { error: message, isClear: line !== undefined && namesFileAndRemedy(line, dataDirectory) };
  }
}
