// Serves the console's files, which are compressed at build time and read once. Asset names contain a hash, so browsers cache
// assets for a year. Browsers revalidate the page every time and usually get 304.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { DendroError } from '../domain/errors.ts';
import type { ContentCoding } from '../endpoint/endpoint-result.ts';
import { chooseCoding } from './content-negotiation.ts';
import { type HttpResponse, matchesEtag, toHeaderList } from './response.ts';
import type { HttpRequest, Route } from './router.ts';

/** Resolves to the same directory whether this file runs from src/ or dist/. */
const CONSOLE_DIRECTORY = join(import.meta.dirname, '..', '..', 'dist', 'console');

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The page may load only its own scripts, styles and images, call only its own origin, and not be framed. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY', // for browsers that do not support frame-ancestors
};

const IMMUTABLE = 'public, max-age=31536000, immutable';

interface StaticFile {
  readonly type: string;
  readonly bytes: Readonly<Record<ContentCoding, Buffer>>;
  readonly etags: Readonly<Record<ContentCoding, string>>;
}

/** `/` and `/assets/*`. They need no store, so they also work while the server starts. */
export function consoleRoutes(directory: string = CONSOLE_DIRECTORY): Route[] {
  let page: StaticFile | undefined;
  let assets: ReadonlyMap<string, StaticFile> | undefined;
  const methods = ['GET', 'HEAD'];
  return [
    {
      path: '/',
      methods,
      async handle(request) {
        page ??= readPage(directory);
        return fileResponse(page, request, 'no-cache');
      },
    },
    {
      path: '/assets/*',
      methods,
      async handle(request) {
        assets ??= readAssets(join(directory, 'assets'));
        // The name is looked up in the list of built files, so it cannot lead to any other file.
        const asset = assets.get(request.pathParameter);
        if (asset === undefined)
          throw new DendroError('not_found', 'the console has no such file; reload the page');
        return fileResponse(asset, request, IMMUTABLE);
      },
    },
  ];
}

function fileResponse(
  { type, bytes, etags }: StaticFile,
  { raw }: HttpRequest,
  cacheControl: string,
): HttpResponse {
  const coding = chooseCoding(raw.headers['accept-encoding']);
  const headers: Record<string, string> = {
    ...SECURITY_HEADERS,
    'Cache-Control': cacheControl,
    ETag: etags[coding],
    Vary: 'Accept-Encoding',
  };
  if (matchesEtag(raw.headers['if-none-match'], etags[coding]))
    return { status: 304, headers: toHeaderList(headers), body: '' };
  headers['Content-Type'] = type;
  if (coding !== 'identity') headers['Content-Encoding'] = coding;
  return { status: 200, headers: toHeaderList(headers), body: bytes[coding] };
}

function readPage(directory: string): StaticFile {
  const file = join(directory, 'index.html');
  if (!existsSync(file)) throw new DendroError('not_found', 'the console is not built; run npm run build');
  return readStaticFile(file);
}

function readAssets(directory: string): ReadonlyMap<string, StaticFile> {
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return new Map(
    names
      .filter(name => extname(name) in CONTENT_TYPES)
      .map(name => [name, readStaticFile(join(directory, name))]),
  );
}

function readStaticFile(file: string): StaticFile {
  const bytes = {
    identity: readFileSync(file),
    gzip: readFileSync(`${file}.gz`),
    br: readFileSync(`${file}.br`),
  };
  return {
    type: CONTENT_TYPES[extname(file)] ?? 'application/octet-stream',
    bytes,
    etags: { identity: createEtag(bytes.identity), gzip: createEtag(bytes.gzip), br: createEtag(bytes.br) },
  };
}

function createEtag(bytes: Buffer): string {
  return `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
}
