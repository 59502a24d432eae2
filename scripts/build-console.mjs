// Builds the console into dist/console: one page, assets with a content hash in their names, and a gzip and a Brotli copy
// of each file at the highest compression level.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build, transformWithEsbuild } from 'vite';

export async function buildConsole(root) {
  const directory = join(root, 'dist', 'console');
  await build({
    root: join(root, 'console'),
    configFile: false,
    logLevel: 'warn',
    base: './', // relative URLs also work behind a proxy that adds a path prefix
    build: {
      outDir: directory,
      emptyOutDir: true,
      target: 'es2022',
      assetsInlineLimit: 0, // the Content-Security-Policy forbids data: URLs in scripts and styles
      modulePreload: false,
      reportCompressedSize: false,
    },
    plugins: [addInitialTheme(join(root, 'console', 'initial-theme.js'))],
  });
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  for (const entry of entries) if (entry.isFile()) compress(join(entry.parentPath, entry.name));
}

/** Adds the script to the head. Vite bundles modules only, and they run after the first paint. */
function addInitialTheme(file) {
  return {
    name: 'initial-theme',
    async buildStart() {
      const { code } = await transformWithEsbuild(readFileSync(file, 'utf8'), file, { minify: true });
      this.emitFile({ type: 'asset', name: 'initial-theme.js', source: code });
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle }) {
        const asset = Object.values(bundle).find(({ names }) => names?.includes('initial-theme.js'));
        return [{ tag: 'script', attrs: { src: `./${asset.fileName}` }, injectTo: 'head-prepend' }];
      },
    },
  };
}

function compress(file) {
  const bytes = readFileSync(file);
  writeFileSync(`${file}.gz`, gzipSync(bytes, { level: constants.Z_BEST_COMPRESSION }));
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }; // the default quality is the highest
  writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
}
