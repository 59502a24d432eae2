// dendro token create | list | revoke: reads and changes the tokens file. A running server applies a change within 1 s.

import {
  type Invocation,
  readDuration,
  readEndpointFolders,
  readTokensFile,
  requireText,
} from '../config.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { listTiers, loadDefinitions } from '../endpoint/catalog.ts';
import { systemClock } from '../system/clock.ts';
import { type LastUsed, readLastUsed } from '../token/last-used.ts';
import { createSecret, hasExpired, hashSecret, isScope, SCOPE_SYNTAX } from '../token/token.ts';
import { changeTokenFile, readTokenFile, type StoredToken } from '../token/token-file.ts';
import { formatTable } from './table.ts';

export async function token(invocation: Invocation): Promise<void> {
  const [action, ...names] = invocation.positionals;
  switch (action) {
    case 'create':
      return create(invocation, names);
    case 'list':
      return list(invocation, names);
    case 'revoke':
      return revoke(invocation, names);
    default:
      throw new UsageError('an action is required: dendro token create, list or revoke');
  }
}

async function create(invocation: Invocation, names: readonly string[]): Promise<void> {
  rejectArguments(names);
  const secret = createSecret();
  const created = readToken(invocation, secret);
  await changeTokenFile(readTokensFile(invocation), tokens => {
    if (tokens.some(({ name }) => name === created.name))
      throw new OperatorError(`there is already a token ${created.name}; revoke it or choose another name`);
    return [...tokens, created];
  });
  process.stdout.write(`${secret}\n`);
}

function readToken(invocation: Invocation, secret: string): StoredToken {
  const now = systemClock();
  const scopes = readScopes(invocation);
  const projects = invocation.many('project');
  if (projects.includes(''))
    throw new UsageError('--project is empty; omit it for a token that is valid for any project');
  if (projects.length > 0 && scopes.includes('admin'))
    throw new UsageError('--scope admin concerns all projects; omit --project, or create two tokens');
  const lifetime = readDuration(invocation, 'expires');
  return {
    name: requireText(invocation, 'name'),
    sha256: hashSecret(secret),
    scopes,
    projects: projects.length === 0 ? undefined : projects,
    expires_at: lifetime === undefined ? undefined : formatTimestamp(now + lifetime),
    rate: readRate(invocation),
    tier: readTier(invocation),
    redact_pii: invocation.isOn('redact-pii') ? true : undefined,
    created_at: formatTimestamp(now),
  };
}

function readScopes(invocation: Invocation): readonly string[] {
  const scopes = invocation.many('scope');
  if (scopes.length === 0) throw new UsageError(`--scope is required; allowed: ${SCOPE_SYNTAX}`);
  for (const scope of scopes) {
    const uuid = UUID_SCOPE.exec(scope)?.[1]?.toLowerCase();
    if (uuid !== undefined) throw uuidScopeError(invocation, scope, uuid);
    if (!isScope(scope)) throw new UsageError(`--scope ${scope} is unknown; allowed: ${SCOPE_SYNTAX}`);
  }
  return scopes;
}

const UUID_SCOPE = /^query:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** A scope has the name of the endpoint: with a UUID it would allow nothing. */
function uuidScopeError(invocation: Invocation, scope: string, uuid: string): UsageError {
  const endpoint = loadDefinitions(readEndpointFolders(invocation)).find(({ id }) => id === uuid);
  const hint =
    endpoint === undefined
      ? 'no endpoint has this UUID (--endpoints adds custom ones)'
      : `use query:${endpoint.name}`;
  return new UsageError(`--scope ${scope}: a scope has the name of an endpoint, not its UUID; ${hint}`);
}

function readRate(invocation: Invocation): number | undefined {
  const text = invocation.text('rate');
  if (text === undefined) return undefined;
  const rate = Number(text);
  if (!/^\d{1,9}(\.\d+)?$/.test(text) || rate <= 0)
    throw new UsageError(`--rate ${text} is not a number of requests per second, such as 10 or 0.5`);
  return rate;
}

/** The definitions of the endpoints, built-in and of --endpoints, define the tiers. */
function readTier(invocation: Invocation): string | undefined {
  const tier = invocation.text('tier');
  if (tier === undefined) return undefined;
  const tiers = listTiers(loadDefinitions(readEndpointFolders(invocation)));
  if (!tiers.includes(tier)) throw new UsageError(`--tier ${tier} is unknown; allowed: ${tiers.join(', ')}`);
  return tier;
}

async function list(invocation: Invocation, names: readonly string[]): Promise<void> {
  rejectArguments(names);
  const file = readTokensFile(invocation);
  const lastUsed = readLastUsed(file);
  const rows = readTokenFile(file).map(stored => describeRow(stored, lastUsed));
  const columns = ['name', 'scopes', 'projects', 'limits', 'expires', 'last used'];
  process.stdout.write(rows.length === 0 ? 'no tokens\n' : formatTable(columns, rows));
}

function describeRow(stored: StoredToken, lastUsed: LastUsed): string[] {
  const limits = [
    stored.rate === undefined ? [] : [`${stored.rate}/s`],
    stored.tier === undefined ? [] : [`up to ${stored.tier}`],
    stored.redact_pii === true ? ['redacted'] : [],
  ].flat();
  const expiry = stored.expires_at ?? 'never';
  return [
    stored.name,
    stored.scopes.join(' '),
    stored.projects?.join(' ') ?? 'any',
    limits.join(', '),
    hasExpired(stored, systemClock) ? `${expiry} (expired)` : expiry,
    lastUsed[stored.sha256] ?? 'never',
  ];
}

async function revoke(invocation: Invocation, names: readonly string[]): Promise<void> {
  const [name, ...others] = names;
  if (name === undefined || others.length > 0)
    throw new UsageError('name exactly one token: dendro token revoke NAME');
  const file = readTokensFile(invocation);
  await changeTokenFile(file, tokens => {
    if (!tokens.some(stored => stored.name === name))
      throw new OperatorError(
        `there is no token ${name}; existing tokens: ${tokens.map(stored => stored.name).join(', ') || 'none'}`,
      );
    return tokens.filter(stored => stored.name !== name);
  });
  process.stdout.write(`revoked ${name}\n`);
}

function rejectArguments(names: readonly string[]): void {
  if (names.length > 0) throw new UsageError(`unexpected argument: ${names[0]}`);
}
