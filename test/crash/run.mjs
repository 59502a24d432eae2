// The entry point of npm run test:crash. Runs main.ts, which is TypeScript.
import { join } from 'node:path';
import { loadTypeScript } from './load-typescript.mjs';

const { main } = await loadTypeScript(join(import.meta.dirname, 'main.ts'));
process.exit(await main(process.argv.slice(2)));
