// dendro endpoint new NAME | test [NAME…]: creates a folder for a custom endpoint, or runs the examples of custom endpoints.
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Invocation, readEndpointFolders, readStoreOptions, requireText } from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { type Endpoint, loadCatalog } from '../endpoint/catalog.ts';
import { ENDPOINT_NAME } from '../endpoint/definition.ts';
import { describeFileError } from '../system/file-access.ts';
import { readAction } from './action.ts';
import { type ExampleOutcome, runExamples } from './endpoint-examples.ts';
import type { Io } from './io.ts';
import { escapeLinesForTerminal } from './terminal.ts';

/** A small working endpoint with comments, for the operator to change. In the definition, ID and NAME are replaced. */
const TEMPLATE = join(import.meta.dirname, 'endpoint-template');

const ACTIONS = { new: createFolder, test: testEndpoints };

export async function endpoint(invocation: Invocation, io: Io): Promise<void> {
  const { action, others } = readAction(invocation, ACTIONS);
  return ACTIONS[action](invocation, others, io);
}

async function createFolder(invocation: Invocation, names: readonly string[], { stdout }: Io): Promise<void> {
  const [name, ...others] = names;
  if (name === undefined || others.length > 0)
    throw new UsageError('give exactly one name, such as: dendro endpoint new errors.by-path');
  if (!ENDPOINT_NAME.test(name))
    throw new UsageError(
      `${name} is not a name of an endpoint: use dotted lower-case words, such as errors.by-path`,
    );
  const parent = requireText(invocation, 'endpoints');
  const folder = join(parent, name);
  if (existsSync(folder))
    throw new OperatorError(`${folder} already exists; choose another name, or remove it`);
  try {
    mkdirSync(folder, { recursive: true });
    for (const file of readdirSync(TEMPLATE)) {
      const content = readFileSync(join(TEMPLATE, file), 'utf8');
      writeFileSync(join(folder, file), content.replace('ID', randomUUID()).replace('NAME', name), {
        flag: 'wx',
      });
    }
  } catch (error) {
    throw new OperatorError(`cannot create ${folder}: ${describeFileError(folder, error as Error)}`);
  }
  stdout.write(
    `created ${folder}\nNext: edit its files, then run dendro endpoint test --endpoints ${parent}\n`,
  );
}

async function testEndpoints(
  invocation: Invocation,
  names: readonly string[],
  { stdout }: Io,
): Promise<void> {
  requireText(invocation, 'endpoints');
  const endpoints = chooseEndpoints(loadCatalog(readEndpointFolders(invocation), 'duckdb').endpoints, names);
  let [passed, failed] = [0, 0];
  for (const chosen of endpoints) {
    const { name, examples } = chosen.definition;
    if (examples.length === 0) stdout.write(`${name}: no examples\n`);
    for await (const outcome of runExamples(chosen, readStoreOptions(invocation))) {
      stdout.write(escapeLinesForTerminal(describeOutcome(name, outcome)));
      if (outcome.problem === undefined) passed++;
      else failed++;
    }
  }
  stdout.write(`${passed} passed, ${failed} failed\n`);
  if (failed > 0) throw new OperatorError(`${failed} of ${passed + failed} examples failed`);
}

/** The custom endpoints with these names; without names, all custom endpoints. */
function chooseEndpoints(endpoints: readonly Endpoint[], names: readonly string[]): readonly Endpoint[] {
  const custom = endpoints.filter(({ isShipped }) => !isShipped);
  const customNames = custom.map(({ definition }) => definition.name);
  const unknown = names.find(name => !customNames.includes(name));
  if (unknown !== undefined)
    throw new UsageError(`unknown endpoint ${unknown}; ${suggest(unknown, customNames, 'custom endpoints')}`);
  return names.length === 0 ? custom : custom.filter(({ definition }) => names.includes(definition.name));
}

function describeOutcome(name: string, { title, problem }: ExampleOutcome): string {
  return problem === undefined ? `passed  ${name}: ${title}\n` : `FAILED  ${name}: ${title}\n${problem}\n`;
}
