// dendro token create | list | revoke: reads and changes the tokens file. A running server applies a change within 1 s.
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  type FlagName,
  type Invocation,
  nameOf,
  PACKS,
  readDuration,
  readEndpointFolders,
  readTokensPath,
  requireText,
} from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { listTiers, loadDefinitions } from '../endpoint/catalog.ts';
import { systemClock } from '../system/clock.ts';
import { findLockOwner } from '../system/lock.ts';
import { type LastUsed, readLastUsed } from '../token/last-used.ts';
import { createSecret, hasExpired, hashSecret, isScope, SCOPE_SYNTAX } from '../token/token.ts';
import { changeTokenFile, readTokenFile, type StoredToken } from '../token/token-file.ts';
import { readAction } from './action.ts';
import type { Io } from './io.ts';
import { formatTable } from './terminal.ts';

const ACTIONS = { create, list, revoke };

/** The flags that belong to one action only. The other flags apply to all actions. */
const ACTION_FLAGS: Readonly<Partial<Record<FlagName, keyof typeof ACTIONS>>> = {
  name: 'create',
  scope: 'create',
  project: 'create',
  expires: 'create',
  rate: 'create',
  tier: 'create',
  'redact-pii': 'create',
  endpoints: 'create',
  json: 'list',
};

export async function token(invocation: Invocation, io: Io): Promise<void> {
  const { action, others } = readAction(invocation, ACTIONS);
  for (const [flag, owner] of Object.entries(ACTION_FLAGS) as [FlagName, string][])
    if (owner !== action && invocation.origin(flag) === 'flag')
      throw new UsageError(`--${flag} is a flag of dendro token ${owner}, not of dendro token ${action}`);
  if (action !== 'revoke' && others[0] !== undefined)
    throw new UsageError(`unexpected argument: ${others[0]}`);
  return ACTIONS[action](invocation, others, io);
}

/** Throws if its directory does not exist. `create` may create one that was named: in another, the token would be useless. */
function findTokensFile(invocation: Invocation, mayCreate = false): string {
  const file = resolve(readTokensPath(invocation));
  const directory = dirname(file);
  const isNamed = invocation.origin('data') !== undefined || invocation.origin('tokens') !== undefined;
  if (existsSync(directory) || (mayCreate && isNamed)) return file;
  throw new OperatorError(
    `there is no directory ${directory}; name the data directory of the server with --data${describeNearby(directory)}`,
  );
}

/** If no server uses the directory, looks for one in the usual places. */
function describeNearby(directory: string): string {
  const near = ['.', '..', 'data', '../data', '/var/lib/dendro'].map(place => resolve(place));
  const places = [directory, join(directory, 'data'), ...near];
  const found = places.find(place => findLockOwner(place) !== undefined);
  return found === undefined || found === directory ? '' : `; a server is running with ${found}`;
}

async function create(invocation: Invocation, _: readonly string[], { stdout, stderr }: Io): Promise<void> {
  const secret = createSecret();
  const created = createToken(invocation, secret);
  const file = findTokensFile(invocation, true);
  await changeTokenFile(file, tokens => {
    if (tokens.some(({ name }) => name === created.name))
      throw new OperatorError(`there is already a token ${created.name}; revoke it or choose another name`);
    return [...tokens, created];
  });
  stdout.write(`${secret}\n`);
  stderr.write(`stored in ${file}${describeNearby(dirname(file))}\n`);
}

/** Creates the entry of the tokens file from the flags. */
function createToken(invocation: Invocation, secret: string): StoredToken {
  const nowMicros = systemClock();
  const scopes = readScopes(invocation);
  const projects = invocation.many('project');
  if (projects.includes(''))
    throw new UsageError('--project is empty; omit it for a token that is valid for any project');
  if (projects.length > 0 && scopes.includes('admin'))
    throw new UsageError('--scope admin concerns all projects; omit --project, or create two tokens');
  const lifetimeMicros = readDuration(invocation, 'expires');
  return {
    name: requireText(invocation, 'name'),
    sha256: hashSecret(secret),
    scopes,
    projects: projects.length === 0 ? undefined : projects,
    expires_at: lifetimeMicros === undefined ? undefined : formatTimestamp(nowMicros + lifetimeMicros),
    rate: readRate(invocation),
    tier: readTier(invocation),
    redact_pii: invocation.isOn('redact-pii') ? true : undefined,
    created_at: formatTimestamp(nowMicros),
  };
}

function readScopes(invocation: Invocation): readonly string[] {
  const scopes = invocation.many('scope');
  if (scopes.length === 0) throw new UsageError(`--scope is required; allowed: ${SCOPE_SYNTAX}`);
  for (const scope of scopes) {
    const problem = findScopeProblem(invocation, scope);
    if (problem !== undefined) throw new UsageError(`${nameOf(invocation, 'scope')} ${scope}${problem}`);
  }
  return scopes;
}

/**
 * Returns the text that follows the scope in the error message; undefined: the scope is valid. A scope `query:…` must contain
 * the name of an existing endpoint: with an unknown name, it would allow nothing.
 */
function findScopeProblem(invocation: Invocation, scope: string): string | undefined {
  if (!isScope(scope)) return ` is unknown; allowed: ${SCOPE_SYNTAX}`;
  const endpoint = /^query:(.+)$/s.exec(scope)?.[1];
  if (endpoint === undefined) return undefined;
  const names = loadDefinitions(readEndpointFolders(invocation, PACKS)).map(({ name }) => name);
  if (names.includes(endpoint)) return undefined;
  return `: there is no endpoint ${endpoint} (--endpoints adds custom ones); ${suggest(endpoint, names, 'available')}`;
}

function readRate(invocation: Invocation): number | undefined {
  const text = invocation.text('rate');
  if (text === undefined) return undefined;
  const rate = Number(text);
  if (!/^\d{1,9}(\.\d+)?$/.test(text) || rate <= 0)
    throw new UsageError(
      `${nameOf(invocation, 'rate')} ${text} is not a number of requests per second, such as 10 or 0.5`,
    );
  return rate;
}

/** The tiers are those in the definitions of all endpoints: built-in, of every pack, and of --endpoints. */
function readTier(invocation: Invocation): string | undefined {
  const tier = invocation.text('tier');
  if (tier === undefined) return undefined;
  const tiers = listTiers(loadDefinitions(readEndpointFolders(invocation, PACKS)));
  if (!tiers.includes(tier))
    throw new UsageError(`${nameOf(invocation, 'tier')} ${tier} is unknown; allowed: ${tiers.join(', ')}`);
  return tier;
}

async function list(invocation: Invocation, _: readonly string[], { stdout }: Io): Promise<void> {
  const file = findTokensFile(invocation);
  const lastUsed = readLastUsed(file);
  const tokens = readTokenFile(file);
  if (invocation.isOn('json')) {
    const described = tokens.map(stored => describeAsJson(stored, lastUsed));
    stdout.write(`${JSON.stringify({ tokens: described }, undefined, 2)}\n`);
    return;
  }
  const rows = tokens.map(stored => describeRow(stored, lastUsed));
  const columns = ['name', 'scopes', 'projects', 'limits', 'expires', 'last used'];
  const none = existsSync(file) ? 'no tokens\n' : `no tokens: there is no file ${file}\n`;
  stdout.write(rows.length === 0 ? none : formatTable(columns, rows));
}

/** Has every key, with null for an absent value. Does not contain the hash of the secret. */
function describeAsJson(stored: StoredToken, lastUsed: LastUsed): Record<string, unknown> {
  return {
    name: stored.name,
    scopes: stored.scopes,
    projects: stored.projects ?? null,
    created_at: stored.created_at,
    expires_at: stored.expires_at ?? null,
    expired: hasExpired(stored, systemClock),
    rate: stored.rate ?? null,
    tier: stored.tier ?? null,
    redact_pii: stored.redact_pii ?? false,
    last_used_at: lastUsed[stored.sha256] ?? null,
  };
}

function describeRow(stored: StoredToken, lastUsed: LastUsed): string[] {
  const limits = [
    stored.rate === undefined ? [] : [`${stored.rate}/s`],
    stored.tier === undefined ? [] : [`up to ${stored.tier}`],
    stored.redact_pii === true ? ['PII redacted'] : [],
  ].flat();
  const expiry = formatTime(stored.expires_at);
  return [
    stored.name,
    stored.scopes.join(' '),
    stored.projects?.join(' ') ?? 'any',
    limits.join(', '),
    hasExpired(stored, systemClock) ? `${expiry} (expired)` : expiry,
    formatTime(lastUsed[stored.sha256]),
  ];
}

/** Formats a time without the fraction of the second, which would only make it harder to read. */
function formatTime(timestamp: string | undefined): string {
  return timestamp?.replace(/\.\d+Z$/, 'Z') ?? 'never';
}

async function revoke(invocation: Invocation, names: readonly string[], { stdout }: Io): Promise<void> {
  const [name, ...others] = names;
  if (name === undefined || others.length > 0)
    throw new UsageError('name exactly one token: dendro token revoke NAME');
  const file = findTokensFile(invocation);
  const isStored = (tokens: readonly StoredToken[]) => tokens.some(stored => stored.name === name);
  try {
    await changeTokenFile(file, tokens => {
      if (!isStored(tokens))
        throw new OperatorError(
          `there is no token ${name}; existing tokens: ${tokens.map(stored => stored.name).join(', ') || 'none'}`,
        );
      return tokens.filter(stored => stored.name !== name);
    });
  } catch (error) {
    if (!(error instanceof OperatorError && isStored(readTokenFile(file)))) throw error;
    throw new OperatorError(`the token ${name} is still valid: ${error.message}`);
  }
  stdout.write(`revoked ${name}\n`);
}
