// Builds the console into dist/console: one page, assets named by their hash, and each of them compressed beforehand as
// well as it can be.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

export async function buildConsole(root) {
  const folder = join(root, 'dist', 'console');
  await build({
    root: join(root, 'console'),
    configFile: false,
    logLevel: 'warn',
    base: './', // works below a proxy's path, too
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0, // the Content-Security-Policy allows no data: in scripts and styles
      modulePreload: false,
      reportCompressedSize: false,
    },
  });
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true }).filter(each =>
    each.isFile(),
  ))
    compress(join(file.parentPath, file.name));
}

function compress(file) {
  const bytes = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }));
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}
