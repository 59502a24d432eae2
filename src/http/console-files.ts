// The console's files: read once, compressed when they were built. Assets carry their hash in their name and never
// change; the page is asked for again every time and mostly answered 304.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { DendroError } from '../domain/errors.ts';
import type { ContentCoding } from '../endpoint/endpoint-result.ts';
import { chooseCoding } from './accept-encoding.ts';
import { type HttpResponse, listHeaders } from './response.ts';
import type { HttpRequest, Route } from './router.ts';

/** The same place seen from src/ and from dist/. */
const CONSOLE_FOLDER = join(import.meta.dirname, '..', '..', 'dist', 'console');

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** The page loads its own scripts, styles and pictures, calls its own origin, and can be framed by nobody. */
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
  'X-Frame-Options': 'DENY', // for browsers that do not know frame-ancestors
};

const IMMUTABLE = 'public, max-age=31536000, immutable';

interface StaticFile {
  readonly type: string;
  readonly bytes: Readonly<Record<ContentCoding, Buffer>>;
  readonly etags: Readonly<Record<ContentCoding, string>>;
}

/** `/` and the assets below it. They need no store, so they are there while it opens. */
export function consoleRoutes(folder: string = CONSOLE_FOLDER): Route[] {
  let page: StaticFile | undefined;
  let assets: ReadonlyMap<string, StaticFile> | undefined;
  const methods = ['GET', 'HEAD'];
  return [
    {
      path: '/',
      methods,
      handle(call) {
        page ??= readPage(folder);
        return reply(page, call, 'no-cache');
      },
    },
    {
      path: '/assets/*',
      methods,
      handle(call) {
        assets ??= readAssets(join(folder, 'assets'));
        // A name is looked up among those that were built, so no name leads to any other file.
        const asset = assets.get(call.pathParameter);
        if (asset === undefined)
          throw new DendroError('not_found', 'the console has no such file; reload its page');
        return reply(asset, call, IMMUTABLE);
      },
    },
  ];
}

function reply(
  { type, bytes, etags }: StaticFile,
  { request }: HttpRequest,
  cacheControl: string,
): HttpResponse {
  const coding = chooseCoding(request.headers['accept-encoding']);
  const headers: Record<string, string> = {
    ...SECURITY_HEADERS,
    'Cache-Control': cacheControl,
    ETag: etags[coding],
    Vary: 'Accept-Encoding',
  };
  if (hasTag(request.headers['if-none-match'], etags[coding]))
    return { status: 304, headers: listHeaders(headers), body: '' };
  headers['Content-Type'] = type;
  if (coding !== 'identity') headers['Content-Encoding'] = coding;
  return { status: 200, headers: listHeaders(headers), body: bytes[coding] };
}

function readPage(folder: string): StaticFile {
  const file = join(folder, 'index.html');
  if (!existsSync(file))
    throw new DendroError('not_found', 'the console is not built here; npm run build makes it');
  return readStaticFile(file);
}

function readAssets(folder: string): ReadonlyMap<string, StaticFile> {
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return new Map(
    names
      .filter(name => extname(name) in CONTENT_TYPES)
      .map(name => [name, readStaticFile(join(folder, name))]),
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
    etags: { identity: tagOf(bytes.identity), gzip: tagOf(bytes.gzip), br: tagOf(bytes.br) },
  };
}

/** Weak comparison, as RFC 9110 asks for If-None-Match. */
function hasTag(ifNoneMatch: string | undefined, etag: string): boolean {
  return (ifNoneMatch ?? '').split(',').some(tag => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}

function tagOf(bytes: Buffer): string {
  return `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
}
