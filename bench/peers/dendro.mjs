// Dendro as its users have it: loaded with `dendro ingest`, served by `dendro serve`, asked over HTTP. Its cache of answers
// is off, so that every call runs its query.
import { Agent } from 'node:http';
import { join } from 'node:path';
import { KINDS, streamRecords } from '../records/platform.mjs';
import { askServer } from '../tools/ask-server.mjs';
import { folderBytes } from '../tools/process-figures.mjs';

const program = join(import.meta.dirname, '..', '..', 'bin', 'dendro');
export const API_KEY = 'benchmark-api-key-0123456789';
/** As `dendro serve` has it when no flag says otherwise. */
export const MEMORY_LIMIT = '500MB';

/** Loads records and lets the store lay them as it does in the background, so that it is measured as it is in the long run. */
export async function loadDendro(workplace, folder, platform, { share, quietSeconds = 0 }, report) {
  for (const kind of KINDS) {
    const command = [process.execPath, program, 'ingest', '--source', kind, '--data', folder, '-'];
    await streamRecords(
      workplace,
      platform,
      { kind, shape: 'ndjson', share },
      stdin => workplace.read(command, { stdin }),
      text => report(`Dendro, ${text}`),
    );
  }
  await letRest(workplace, folder, quietSeconds, report);
}

/** What the store would do in the background. */
export async function letRest(workplace, folder, quietSeconds, report) {
  if (quietSeconds === 0) return;
  report('Dendro lays its records');
  const settleProcess = join(import.meta.dirname, 'settle-process.mjs');
  await workplace.read([process.execPath, settleProcess, folder, String(quietSeconds)]);
}

/** A token that may ask for one project alone. */
export async function makePinnedToken(workplace, folder, project) {
  const command = [process.execPath, program, 'token', 'create', '--data', folder, '--name', project];
  const output = await workplace.read([...command, '--scope', 'query', '--project', project]);
  return output.trim();
}

export async function serveDendro(workplace, folder, { tokens = {}, flags = ['--cache-bytes', '0'] } = {}) {
  const command = [
    process.execPath,
    program,
    'serve',
    '--data',
    folder,
    '--port',
    '0',
    '--internal-port',
    '0',
    ...flags,
  ];
  const urls = {};
  const server = await workplace.start(
    command,
    /^internal: listening on (.*)/,
    { DENDRO_API_KEY: API_KEY },
    line => {
      urls.public ??= /^public: listening on (.*)/.exec(line)?.[1]; // it comes before the other
    },
  );
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    name: 'dendro',
    command: workplace.show(command),
    publicUrl: urls.public,
    internalUrl: server.word,
    pid: server.child.pid,
    async ask(call, wantsRows = false, callAgent = agent) {
      const url = `${urls.public}/api/endpoints/query/${call.endpoint}?${new URLSearchParams(call.parameters)}`;
      const { ms, body } = await askServer(callAgent, url, tokens[call.pinnedProject] ?? API_KEY);
      return { ms, rows: wantsRows ? JSON.parse(body).result.map(row => Object.values(row)) : undefined };
    },
    diskBytes: () => folderBytes(folder),
    async stop() {
      agent.destroy();
      await server.stop();
    },
  };
}
