// tokens.json: the tokens of a data directory, hashed, mode 0600.
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import * as v from 'valibot';
import { OperatorError } from '../domain/errors.ts';
import { parseTimestamp } from '../domain/timestamp.ts';
import { withFileLock } from '../system/file-lock.ts';
import { createDirectory, writePrivateFile } from '../system/files.ts';
import { isScope, type Token } from './token.ts';

const filled = v.pipe(v.string(), v.nonEmpty());
const moment = v.pipe(
  v.string(),
  v.check(text => parseTimestamp(text) !== undefined),
);

const storedToken = v.strictObject({
  name: filled,
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  scopes: v.pipe(v.array(v.pipe(v.string(), v.check(isScope))), v.nonEmpty()),
  projects: v.optional(v.pipe(v.array(filled), v.nonEmpty())),
  expires_at: v.optional(moment),
  rate: v.optional(v.pipe(v.number(), v.finite(), v.gtValue(0))),
  tier: v.optional(filled),
  redact_pii: v.optional(v.boolean()),
  created_at: moment,
});

const tokenFile = v.strictObject({ version: v.literal(1), tokens: v.array(storedToken) });

/** A token as the file keeps it. */
export interface StoredToken extends Token {
  readonly created_at: string;
}

/** The tokens of a file; none if there is no file. */
export function readTokenFile(file: string): readonly StoredToken[] {
  try {
    return v.parse(tokenFile, JSON.parse(readFileSync(file, 'utf8'))).tokens;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    // The parser's own words could quote what stands in the file.
    throw new OperatorError(`${file}: is not a tokens file that this version can read`);
  }
}

/** Reads, changes and replaces the file, safe beside another command that does the same. */
export async function changeTokenFile(
  file: string,
  change: (tokens: readonly StoredToken[]) => readonly StoredToken[],
): Promise<void> {
  createDirectory(dirname(file));
  await withFileLock(file, () => {
    const content = { version: 1, tokens: change(readTokenFile(file)) };
    if (!v.is(tokenFile, content))
      throw new OperatorError(`${file}: was left as it is, since the change could not have been read again`);
    writePrivateFile(file, `${JSON.stringify(content, undefined, 2)}\n`);
  });
}
