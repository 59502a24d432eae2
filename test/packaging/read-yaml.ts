// Reads a YAML file of deploy/, without types, like JSON.parse.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

const DEPLOY = join(import.meta.dirname, '../../deploy');

/** Returns the documents of the file. Ignores the tags of Docker Compose. */
export function readYaml(name: string) {
  const text = readFileSync(join(DEPLOY, name), 'utf8').replace(/!(override|reset) ?/g, '');
  return JSON.parse(JSON.stringify(parseAllDocuments(text, { merge: true })));
}
