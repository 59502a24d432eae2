// The receivers of notifications: one YAML file of the operator. Nobody else can name an address to which Dendro sends anything.
import { statSync } from 'node:fs';
import * as v from 'valibot';
import { OperatorError } from '../domain/errors.ts';
import { describeIssue } from '../endpoint/definition.ts';
import type { DefinitionProblem } from '../endpoint/parameter-definition.ts';
import { readYamlFile } from '../endpoint/yaml-file.ts';

const flag = v.optional(v.boolean(), false);
const text = v.pipe(v.string(), v.nonEmpty('must not be empty'));
/** Only the name of a variable is in the file, not the secret itself. */
const secret = v.pipe(
  v.string(),
  v.regex(/^\$\w+$/, 'must name an environment variable, such as $OPS_SECRET'),
);
const common = { url: text, redact: flag };

const receiver = v.variant('type', [
  v.strictObject({
    ...common,
    type: v.literal('webhook'),
    secret: v.optional(secret),
    authorization: v.optional(secret),
  }),
  v.strictObject({ ...common, type: v.literal('slack') }),
  v.strictObject({ ...common, type: v.literal('alertmanager'), authorization: v.optional(secret) }),
]);

const receiversFile = v.strictObject({
  receivers: v.record(
    v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9_-]*$/, 'must be lower-case letters, digits, - and _')),
    receiver,
  ),
});

export interface Receiver {
  readonly name: string;
  readonly type: 'webhook' | 'slack' | 'alertmanager';
  /** May contain a secret, so it is never logged. */
  readonly url: string;
  /** The key of the signature. */
  readonly secret?: string | undefined;
  /** The value of the header Authorization. */
  readonly authorization?: string | undefined;
  /** Replaces IP addresses. */
  readonly redact: boolean;
}

export type Receivers = ReadonlyMap<string, Receiver>;

/** Reads an environment variable. */
export type ReadVariable = (name: string) => string | undefined;

/** Throws OperatorError with the file, the line and the reason. Without a file, there are no receivers. */
export function readReceivers(file: string | undefined, readVariable: ReadVariable): Receivers {
  if (file === undefined) return new Map();
  checkMode(file);
  const { receivers } = readYamlFile(file, content => parseReceivers(content, readVariable));
  return receivers;
}

/** Group may read it: a mounted secret is often readable by the group of the service. */
const FORBIDDEN_MODE = 0o026;

function checkMode(file: string): void {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0; // reading it reports a missing file
  if ((mode & FORBIDDEN_MODE) !== 0)
    throw new OperatorError(
      `${file}: has mode ${(mode & 0o777).toString(8).padStart(4, '0')}, so other users can read or change where notifications go; run: chmod 600 ${file}`,
    );
}

function parseReceivers(
  content: unknown,
  readVariable: ReadVariable,
): { readonly receivers: Receivers } | { readonly problem: DefinitionProblem } {
  const { success, output, issues } = v.safeParse(receiversFile, content, { message: describeIssue });
  if (!success) {
    const [{ path = [], message }] = issues;
    return { problem: { path: path.map(({ key }) => String(key)), message } };
  }
  const receivers = new Map<string, Receiver>();
  for (const [name, { type, redact, ...texts }] of Object.entries(output.receivers)) {
    const filled: Record<string, string> = {};
    for (const [key, template] of Object.entries<string | undefined>(texts)) {
      if (template === undefined) continue;
      let missing: string | undefined;
      filled[key] = template.replace(/\$(\w+)/g, (_, variable: string) => {
        const value = readVariable(variable);
        if (!value) missing ??= variable;
        return value ?? '';
      });
      const problem =
        missing === undefined ? findTextProblem(key, filled[key]) : `the variable ${missing} is not set`;
      if (problem !== undefined) return { problem: { path: ['receivers', name, key], message: problem } };
    }
    const { url = '', secret: signingKey, authorization } = filled;
    receivers.set(name, { name, type, redact, url, secret: signingKey, authorization });
  }
  return { receivers };
}

/** Does not quote the text, which may contain a secret. */
function findTextProblem(key: string, filled: string): string | undefined {
  if (key === 'authorization')
    return /^[\x20-\x7e]+$/.test(filled) ? undefined : 'is not a value that an HTTP header can carry';
  if (key !== 'url') return undefined;
  const url = URL.canParse(filled) ? new URL(filled) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return 'must be a URL with http or https';
  return url.username !== '' || url.password !== ''
    ? 'contains a user name or a password; use authorization instead'
    : undefined;
}
