import { describe, expect, test } from 'vitest';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';

describe('the URL of a ClickHouse store', () => {
  test('contains hosts, users, database and cluster', () => {
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

  test('has defaults for everything but the host, and clickhouses:// means TLS', () => {
    const reader = { user: 'default', password: '' };
    const rest = { database: 'default', cluster: undefined, reader, writer: reader };
    expect(parseClickHouseUrl('clickhouse://db')).toEqual({ urls: ['http://db:8123'], ...rest });
    expect(parseClickHouseUrl('clickhouses://db')).toEqual({ urls: ['https://db:8443'], ...rest });
  });

  test.each([
    ['clickhouse://h:80', 'http://h:80'],
    ['clickhouses://h:443', 'https://h:443'],
    ['clickhouse://[::1]:9000', 'http://[::1]:9000'],
  ])('the port of %s is kept', (text, url) => {
    expect(parseClickHouseUrl(text).urls).toEqual([url]);
  });

  test.each([
    ['clickhouse://', /is not a valid URL/],
    ['clickhouse:/nowhere', /has an invalid database name|is not a valid URL/],
    ['clickhouse://u:SECRET@h:99999/db', /is not a valid URL/],
    ['clickhouse://u:SECRET@h/a-b', /has an invalid database name; allowed are letters/],
    ['clickhouse://u:2024/SECRET@h/db', /has an invalid database name.* in a password write \/ as %2F/],
    [
      'clickhouse://u:2024?SECRET@h/db',
      /has an unknown parameter.* in a password write \/ as %2F, \? as %3F and # as %23/,
    ],
    ['clickhouse://u:2024?cluster=SECRET@h/db', /has an invalid cluster name/],
    ['clickhouse://u:SECRET@h/db?cluster=a b', /has an invalid cluster name/],
    [
      'clickhouse://u:SECRET@h/db?clutser=a',
      /has an unknown parameter; allowed parameters are host, cluster/,
    ],
    ['clickhouse://u:SECRET@h/db?cluster=a&cluster=b', /has 2 values for cluster/],
    ['clickhouse://u:SECRET@h/db?host=a/b', /has an invalid host/],
    ['clickhouse://u:SECRET@h/db?insert_password=SECRET', /insert_password without insert_user/],
    ['clickhouse://u:SECRET%@h/db', /has a % that/],
    ['clickhouse://u:SECRET@h/db#x', /is not a valid URL; in a password write .* and # as %23/],
  ])('the error about %s says what is wrong, without the password', (text, problem) => {
    expect(() => parseClickHouseUrl(text)).toThrow(problem);
    expect(() => parseClickHouseUrl(text)).not.toThrow(/SECRET/);
  });

  test('an error names the option that the URL was given for, and an example', () => {
    const parse = () => parseClickHouseUrl('clickhouse://', '--to');
    expect(parse).toThrow(
      /^--to is not a valid URL; in a password .*; example: clickhouse:\/\/user:password@host:8123\/database$/,
    );
    expect(() => parseClickHouseUrl('clickhouse://')).toThrow(/^--store /);
  });
});
