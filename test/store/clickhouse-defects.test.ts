import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Hosts } from '../../src/store/clickhouse/hosts.ts';
import { findTableProblem } from '../../src/store/clickhouse/preflight.ts';
import { Reader } from '../../src/store/clickhouse/reader.ts';
import { Writer } from '../../src/store/clickhouse/writer.ts';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';

const LIMITS = { queryConcurrency: 2, queryQueueLength: 2, queryTimeoutSeconds: 10 };
/** Nothing listens on these ports. */
const URL = 'clickhouse://user:password@127.0.0.1:1/dendro?host=127.0.0.1:2';

// The store is not reached: the defect is in the code before.
describe('a defect of the program on a path to ClickHouse', () => {
  let hosts: Hosts;
  let reader: Reader;
  beforeEach(() => {
    hosts = new Hosts(parseClickHouseUrl(URL), 2);
    reader = new Reader(hosts, LIMITS);
  });
  afterEach(async () => {
    await reader.close();
    await hosts.close();
  });
  const defect = () => {
    throw new TypeError('x is not a function');
  };
  const brokenCredentials = {
    get user(): string {
      return defect();
    },
    password: '',
  };

  test('is not retried on another host', async () => {
    let attempts = 0;
    const work = async () => {
      attempts++;
      return defect();
    };
    await expect(hosts.run(work, new AbortController().signal)).rejects.toThrow(TypeError);
    expect(attempts).toBe(1);
  });

  test('fails a query as itself, not as an unreachable store', async () => {
    const parameters = {
      get project(): string {
        return defect();
      },
    };
    const query = reader.query({ sql: 'select 1', parameters, purpose: 'query' });
    await expect(query).rejects.toThrow(TypeError);
  });

  test('fails an insert as itself, so that its stack is logged', async () => {
    const writer = new Writer(hosts, brokenCredentials, {});
    const block = { kind: 'edge', first: 0, count: 1, token: 'a', compressed: new Uint8Array() } as const;
    await expect(writer.insert(block)).rejects.toThrow(TypeError);
  });

  test('fails the preflight as itself', async () => {
    const answering = { query: async () => ({ rows: [] }) } as unknown as Reader;
    await expect(findTableProblem(answering, new Writer(hosts, brokenCredentials, {}))).rejects.toThrow(
      TypeError,
    );
  });

  test('an insert check that no host accepts is still an unreachable store', async () => {
    const answering = { query: async () => ({ rows: [] }) } as unknown as Reader;
    const preflight = findTableProblem(answering, new Writer(hosts, { user: 'user', password: '' }, {}));
    await expect(preflight).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('a host that refuses the connection is still an unreachable store', async () => {
    const query = reader.query({ sql: 'select 1', purpose: 'query' });
    await expect(query).rejects.toMatchObject({ code: 'unavailable' });
  });
});
