// Who is calling: X-API-KEY, or Authorization: Bearer. A token in the query string is never read.
import type { IncomingHttpHeaders } from 'node:http';
import { DendroError } from '../errors.ts';
import type { Token } from '../token/token.ts';
import type { TokenSet } from '../token/token-set.ts';

/** The caller's token; throws `unauthorized` without a good one. */
export function authenticate(headers: IncomingHttpHeaders, tokens: TokenSet): Token {
  const token = identify(headers, tokens);
  if (token !== undefined) return token;
  throw new DendroError(
    'unauthorized',
    secretOf(headers) === ''
      ? 'a token is needed, in the header X-API-KEY or as Authorization: Bearer'
      : 'the token is not known, or no longer good',
  );
}

export function identify(headers: IncomingHttpHeaders, tokens: TokenSet): Token | undefined {
  const secret = secretOf(headers);
  return secret === '' ? undefined : tokens.find(secret);
}

/** An empty header counts as absent; where both are given, X-API-KEY counts. */
function secretOf(headers: IncomingHttpHeaders): string {
  const key = headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? '';
}
