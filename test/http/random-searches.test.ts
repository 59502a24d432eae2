import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import {
  expressionOf,
  formatExpression,
  recordDraft,
  SEARCHED_KINDS,
  SYNTAX,
} from '../support/reference-search.ts';
import { useApp } from '../support/use-app.ts';

/** DENDRO_TEST_SEARCHES sets another number; 50,000 take minutes. */
const SEARCHES = Number(process.env['DENDRO_TEST_SEARCHES'] ?? 500);
const CONCURRENCY = 4;

const app = useApp({ endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined } });
beforeAll(async () => {
  for (const kind of SEARCHED_KINDS)
    await app.append(
      kind,
      fc
        .sample(recordDraft, 50)
        .map((draft, i) => draft(kind, { id: `${i}`, at: 1794659696000000n, project: 'p' })),
    );
});

const query = fc.oneof(
  fc.array(fc.constantFrom(...SYNTAX, '\0'), { maxLength: 40 }).map(parts => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.constantFrom(...SEARCHED_KINDS).chain(kind => expressionOf(kind).map(formatExpression)),
);
const request = fc.record({
  query,
  kind: fc.constantFrom(...LOG_KINDS),
  endpoint: fc.constantFrom('logs.search', 'logs.search', 'logs.histogram', 'logs.fields'),
  project_tier: fc.constantFrom('FREE', 'PAYG'),
  cursor: fc.constantFrom('', '', '', 'x', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'),
});

test('of random searches, each returns rows or an error that names the parameter', async () => {
  const requests = fc.sample(request, SEARCHES);
  const statuses = new Map<number, number>();
  const sendNext = async (): Promise<void> => {
    for (let next = requests.pop(); next !== undefined; next = requests.pop()) {
      const { endpoint, ...parameters } = next;
      const { status, error } = await app.query(endpoint, { project: 'p', field: 'status', ...parameters });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status === 200) continue;
      expect([status, next]).toEqual([400, next]);
      expect(error.param).toMatch(/^(query|cursor)$/);
      if (error.param === 'query')
        expect(error.message).toMatch(/ at character \d+|contains a NUL character/);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, sendNext));
  expect([...statuses.keys()].sort()).toEqual([200, 400]);
  process.stdout.write(`random searches: ${JSON.stringify([...statuses])}\n`);
}, 3_600_000);
