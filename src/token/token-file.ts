// tokens.json: the tokens of a data directory, hashed, mode 0600.
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { OperatorError } from '../errors.ts';
import { makeFolder } from '../folder.ts';
import { withFileLock } from './file-lock.ts';
import { writePrivateFile } from './private-file.ts';
import { isScope, type Token } from './token.ts';

const storedToken = z.strictObject({
  name: z.string().min(1),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  scopes: z.array(z.string().refine(isScope)).min(1),
  projects: z.array(z.string().min(1)).min(1).optional(),
  expires_at: z.iso.datetime().optional(),
  rate: z.number().positive().optional(),
  tier: z.string().min(1).optional(),
  redact_pii: z.boolean().optional(),
  created_at: z.iso.datetime(),
});

const tokenFile = z.strictObject({ version: z.literal(1), tokens: z.array(storedToken) });

/** A token as the file keeps it. */
export interface StoredToken extends Token {
  readonly created_at: string;
}

/** The tokens of a file; none if there is no file. */
export function readTokenFile(file: string): readonly StoredToken[] {
  try {
    return tokenFile.parse(JSON.parse(readFileSync(file, 'utf8'))).tokens;
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
  makeFolder(dirname(file));
  await withFileLock(file, () => {
    const content = { version: 1, tokens: change(readTokenFile(file)) };
    if (!tokenFile.safeParse(content).success)
      throw new OperatorError(`${file}: was left as it is, since the change could not have been read again`);
    writePrivateFile(file, `${JSON.stringify(content, undefined, 2)}\n`);
  });
}
