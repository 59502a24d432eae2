// The examples of the alerts pack: `npm test` on DuckDB, `npm run test:clickhouse` on ClickHouse.
import { expect, test } from 'vitest';
import { runExample } from '../../src/cli/endpoint-examples.ts';
import { checkEndpoint, loadCatalog } from '../../src/endpoint/catalog.ts';
import { startTestApp } from '../support/app.ts';
import { ALERTS, BUILT_IN } from '../support/custom-endpoints.ts';

const folders = { builtIn: BUILT_IN, packs: [ALERTS], custom: undefined };
const { endpoints } = loadCatalog(folders, 'duckdb');
const pack = endpoints.filter(({ definition }) => definition.name.startsWith('alerts.'));

test('the pack has five alerts, each with an example', () => {
  expect(
    pack.map(({ definition: { alert, examples } }) => [alert !== undefined, examples.length > 0]),
  ).toEqual(Array.from({ length: 5 }, () => [true, true]));
});

test.each(pack.map(({ definition }) => definition.name))(
  '%s returns the rows of its examples',
  async name => {
    const examples = loadCatalog(folders, 'duckdb').find(name)?.definition.examples ?? [];
    for (const example of examples) {
      const app = await startTestApp({ endpointFolders: folders });
      try {
        const endpoint = loadCatalog(folders, app.store.name).find(name) ?? expect.fail();
        await checkEndpoint(endpoint, app.store);
        expect(await runExample(app.store, endpoint, example)).toBeUndefined();
      } finally {
        await app.close();
      }
    }
  },
);
