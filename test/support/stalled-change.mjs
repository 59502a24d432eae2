// Adds a token from a separate process, straight from the sources, and stops itself (SIGSTOP) after it has read the tokens file
// for the first time. SIGCONT resumes it. Usage: node stalled-change.mjs TOKENS_FILE NAME
import { join } from 'node:path';
import { runnerImport } from 'vite';

const [tokensFile, name] = process.argv.slice(2);
const load = async file =>
  (await runnerImport(join(import.meta.dirname, file), { configFile: false, logLevel: 'error' })).module;
const { changeTokenFile } = await load('../../src/token/token-file.ts');
const { storedToken } = await load('./tokens.ts');

let reads = 0;
await changeTokenFile(tokensFile, tokens => {
  if (reads++ === 0) process.kill(process.pid, 'SIGSTOP');
  return [...tokens, storedToken(name, name)];
});
