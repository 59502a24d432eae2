// Builds dist/: compiles src/ and client/, copies the SQL and YAML files of src/ and bundles the console.
import { execFileSync } from 'node:child_process';
import { cpSync, lstatSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { buildConsole } from './build-console.mjs';

const root = join(import.meta.dirname, '..');
rmSync(join(root, 'dist'), { recursive: true, force: true });
execFileSync('npx', ['tsc', '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
buildClient();
cpSync(join(root, 'src'), join(root, 'dist'), {
  recursive: true,
  filter: path => lstatSync(path).isDirectory() || ['.sql', '.yaml'].includes(extname(path)),
});
await buildConsole(root);

/**
 * Compiles client/. The compiler changes the extension of imports from .ts to .js in JavaScript, but not in declarations. Older
 * compilers cannot resolve an import of .ts in a declaration, so it is changed here.
 */
function buildClient() {
  execFileSync('npx', ['tsc', '-p', 'client', '--noEmit', 'false'], { cwd: root, stdio: 'inherit' });
  const directory = join(root, 'dist/client');
  for (const name of readdirSync(directory).filter(file => file.endsWith('.d.ts'))) {
    const file = join(directory, name);
    writeFileSync(file, readFileSync(file, 'utf8').replace(/(from '\.\/[\w-]+)\.ts'/g, "$1.js'"));
  }
}
