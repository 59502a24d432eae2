import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { createEndpointFiles } from '../../src/cli/endpoint-template.ts';
import { ENDPOINT_NAME, readDefinition } from '../../src/endpoint/definition.ts';

test.each(['errors.by-path', '404', '1.5', '1e3', '0x1f', 'true', 'null', 'yes'])(
  'a new endpoint can have the name %s',
  name => {
    expect(name).toMatch(ENDPOINT_NAME);
    const id = randomUUID();
    const definition = readDefinition(parseYaml(createEndpointFiles(name, id)['endpoint.yaml'] ?? ''));
    expect(definition).toMatchObject({ id, name });
  },
);
