// Builds dist/: compiles src/, copies its SQL files and bundles the console.
import { execFileSync } from 'node:child_process';
import { cpSync, lstatSync, rmSync } from 'node:fs';
import { extname, join } from 'node:path';
import { buildConsole } from './build-console.mjs';

const root = join(import.meta.dirname, '..');
rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
cpSync(join(root, 'src'), join(root, 'dist'), {
  recursive: true,
  filter: path => lstatSync(path).isDirectory() || extname(path) === '.sql',
});
await buildConsole(root);
