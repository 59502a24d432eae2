import { describe, expect, test } from 'vitest';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';

describe('the URL of a ClickHouse store', () => {
  test('has hosts, users, database and cluster', () => {
    const text =
      'clickhouse://reader:s%40fe%3Aword@one:9123/logs?host=two&host=three:8124&cluster=main&insert_user=w&insert_password=p%26q';
    expect(parseClickHouseUrl(text)).toEqual({
      urls: ['http://one:9123', 'http://two:8123', 'http://three:8124'],
      database: 'logs',
      cluster: 'main',
      reader: { user: 'reader', password: 's@fe:word' },
      writer: { user: 'w', password: 'p&q' },
    });
  });

  test('has defaults for all but the host, and uses TLS with the scheme clickhouses', () => {
    const reader = { user: 'default', password: '' };
    const rest = { database: 'default', cluster: undefined, reader, writer: reader };
    expect(parseClickHouseUrl('clickhouse://db')).toEqual({ urls: ['http://db:8123'], ...rest });
    expect(parseClickHouseUrl('clickhouses://db')).toEqual({ urls: ['https://db:8443'], ...rest });
  });

  test.each([
    ['clickhouse://h:80', 'http://h:80'],
    ['clickhouses://h:443', 'https://h:443'],
    ['clickhouse://[::1]:9000', 'http://[::1]:9000'],
  ])('%s keeps its port', (text, url) => {
    expect(parseClickHouseUrl(text).urls).toEqual([url]);
  });

  test.each([
    ['clickhouse://', /is not an address/],
    ['clickhouse:/nowhere', /names a database|is not an address/],
    ['clickhouse://u:SECRET@h:99999/db', /is not an address/],
    ['clickhouse://u:SECRET@h/a-b', /names a database that is none; letters/],
    ['clickhouse://u:2024/SECRET@h/db', /names a database that is none.* password is written %2F/],
    ['clickhouse://u:2024?SECRET@h/db', /has an unknown parameter.* password is written %2F or %3F/],
    ['clickhouse://u:2024?cluster=SECRET@h/db', /names a cluster that is none/],
    ['clickhouse://u:SECRET@h/db?cluster=a b', /names a cluster that is none/],
    ['clickhouse://u:SECRET@h/db?clutser=a', /has an unknown parameter; parameters are host, cluster/],
    ['clickhouse://u:SECRET@h/db?cluster=a&cluster=b', /has 2 times cluster/],
    ['clickhouse://u:SECRET@h/db?host=a/b', /names a host that is none/],
    ['clickhouse://u:SECRET@h/db?insert_password=SECRET', /insert_password without an insert_user/],
    ['clickhouse://u:SECRET%@h/db', /holds a %/],
    ['clickhouse://u:SECRET@h/db#x', /is not an address/],
  ])('%s is refused, without the password', (text, fault) => {
    expect(() => parseClickHouseUrl(text)).toThrow(fault);
    expect(() => parseClickHouseUrl(text)).not.toThrow(/SECRET/);
  });
});
