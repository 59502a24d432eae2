import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startApp } from '../src/app.ts';
import { commands } from '../src/cli/commands.ts';
import {
  FLAGS,
  type FlagName,
  findUnknownVariables,
  isSwitch,
  KEY_VARIABLES,
  readInvocation,
  readServeConfig,
  URL_VARIABLES,
  variableOf,
} from '../src/config.ts';
import { UsageError } from '../src/domain/errors.ts';
import { testConfig } from './support/app.ts';
import { createTempDirectory, findFreePort } from './support/process.ts';

const flags = commands.find(({ name }) => name === 'serve')?.flags ?? [];
const read = (...args: string[]) => readServeConfig(readInvocation(args, {}, flags));

describe('every flag', () => {
  const names = (Object.keys(FLAGS) as FlagName[]).filter(name => name !== 'help');

  test.each(names.filter(name => !isSwitch(name)))(
    '--%s is read from its variable, and takes precedence over it',
    name => {
      const variable = name === 'url' ? URL_VARIABLES.public : variableOf(name);
      const read = (args: readonly string[]) => readInvocation(args, { [variable]: 'one' }, [name]);
      expect([read([]).text(name), read([]).many(name), read([]).origin(name)]).toEqual([
        'one',
        ['one'],
        'variable',
      ]);
      const byFlag = read([`--${name}`, 'two']);
      expect([byFlag.text(name), byFlag.many(name), byFlag.origin(name)]).toEqual(['two', ['two'], 'flag']);
    },
  );

  test.each(names.filter(isSwitch))('--%s is turned on by its variable', name => {
    const read = (args: readonly string[], value: string) =>
      readInvocation(args, { [variableOf(name)]: value }, [name]).isOn(name);
    expect(['1', 'true', 'yes', 'on', '0', 'false', 'no', 'off', ''].map(value => read([], value))).toEqual([
      ...[true, true, true, true, false, false, false, false, false],
    ]);
    expect(read([`--${name}`], '0')).toBe(true);
    expect(() => read([], 'maybe')).toThrow(UsageError);
  });
});

test('the variable of a repeatable flag has values separated by commas or spaces', () => {
  const read = readInvocation([], { DENDRO_SCOPE: 'query:logs.all, metrics  ingest' }, ['scope']);
  expect(read.many('scope')).toEqual(['query:logs.all', 'metrics', 'ingest']);
});

test('--default-tier is FREE unless it is given, and must be a tier of an endpoint', async () => {
  expect([read().defaultTier, read('--default-tier', 'PRO').defaultTier]).toEqual(['FREE', 'PRO']);
  const directory = createTempDirectory();
  const config = { ...testConfig(directory.path), defaultTier: 'GOLD' };
  await expect(startApp(config, () => {})).rejects.toThrow(
    '--default-tier GOLD is unknown; allowed: FREE, PRO, PAYG, ENTERPRISE',
  );
  directory.remove();
});

describe('keys in the environment', () => {
  test('with --studio, only the key for queries has the scope studio', () => {
    const keys = { DENDRO_API_KEY: 'a'.repeat(16), DENDRO_QUERY_KEY: 'c'.repeat(16) };
    const scopesWith = (...args: string[]) =>
      readServeConfig(readInvocation(args, keys, flags)).environmentKeys.map(({ scopes }) => scopes);
    expect(scopesWith()).toEqual([['query', 'ingest', 'metrics'], ['query']]);
    expect(scopesWith('--studio')).toEqual([
      ['query', 'ingest', 'metrics'],
      ['query', 'studio'],
    ]);
  });

  test('none has the scope admin', () => {
    const keys = {
      DENDRO_API_KEY: 'a'.repeat(16),
      DENDRO_INGEST_KEY: 'b'.repeat(16),
      DENDRO_QUERY_KEY: 'c'.repeat(16),
    };
    const { environmentKeys } = readServeConfig(readInvocation([], keys, flags));
    expect(environmentKeys.map(({ scopes }) => scopes)).toEqual([
      ['query', 'ingest', 'metrics'],
      ['ingest'],
      ['query'],
    ]);
  });
});

test('variables that look like those of Dendro but are none are found, with the name that was probably meant', () => {
  const names = [...(Object.keys(FLAGS) as FlagName[]).filter(name => name !== 'help').map(variableOf)];
  const known = [...names, ...Object.values(URL_VARIABLES), ...Object.keys(KEY_VARIABLES), 'PATH', 'DENDRO'];
  const unknown = ['DENDRO_RETENTION_DAY', 'DENDRO_INGEST_QUEUE_BYTES', 'DENDRO_HELP'];
  const environment = Object.fromEntries([...known, ...unknown].map(name => [name, 'x']));
  expect(findUnknownVariables(environment)).toEqual([
    'DENDRO_RETENTION_DAY (did you mean DENDRO_RETENTION_DAYS?)',
    'DENDRO_INGEST_QUEUE_BYTES',
    'DENDRO_HELP',
  ]);
});

describe('--packs', () => {
  const packsOf = (args: readonly string[], DENDRO_PACKS?: string) =>
    readServeConfig(readInvocation(args, { DENDRO_PACKS }, flags)).endpointFolders.packs?.map(path =>
      basename(path),
    );

  test.each([[], ['--packs', 'explore'], ['--packs', 'explore,explore']])(
    'the explore pack is on by default and can be named: %s %s',
    (...args) => {
      expect(packsOf(args)).toEqual(['explore']);
    },
  );

  test('none turns the packs off, in the flag and in the variable; the flag takes precedence', () => {
    expect(packsOf(['--packs', 'none'])).toEqual([]);
    expect(packsOf([], 'none')).toEqual([]);
    expect(packsOf(['--packs', 'explore'], 'none')).toEqual(['explore']);
    expect(packsOf([], '')).toEqual(['explore']);
  });
});

describe('--cors-origin', () => {
  test.each([
    ['https://Dash.Example.com', 'https://dash.example.com'],
    ['https://dash.example.com:443', 'https://dash.example.com'],
    ['HTTP://localhost:3000', 'http://localhost:3000'],
  ])('%s is normalized as browsers send it: %s', (given, origin) => {
    expect(read('--cors-origin', given).corsOrigins).toEqual([origin]);
  });

  test.each(['*', 'null', 'dash.example.com', 'https://dash.example.com/', 'https://a@b.com', 'https://a:b'])(
    '%s is not an origin and is rejected',
    given => {
      expect(() => read('--cors-origin', given)).toThrow(UsageError);
    },
  );
});

describe('--max-disk', () => {
  test.each([
    ['1GB', 1e9],
    ['1.5 TB', 1.5e12],
    ['2GiB', 2 * 1024 ** 3],
  ])('%s is %d bytes, and a part has at most a twentieth of them', (given, bytes) => {
    const { maxDiskBytes, store } = read('--max-disk', given);
    expect([maxDiskBytes, store.maxPartBytes]).toEqual([bytes, bytes / 20]);
  });

  test('there is no limit without it', () => {
    const { maxDiskBytes, store } = read();
    expect([maxDiskBytes, store.maxPartBytes]).toEqual([undefined, undefined]);
  });

  test.each(['50', '999MB', '0GB', '-1GB', 'GB', '50 apples'])(
    '%s is not a size of at least 1GB and is rejected',
    given => {
      expect(() => read(`--max-disk=${given}`)).toThrow(
        new UsageError(`--max-disk ${given} is not a size of at least 1GB, such as 50GB or 2TB`),
      );
    },
  );

  test('it is rejected with a ClickHouse store', () => {
    expect(() => read('--max-disk', '50GB', '--store', 'clickhouse://h:8123/d')).toThrow(
      new UsageError('--max-disk works with --store duckdb only; limit the disks of ClickHouse itself'),
    );
  });
});

describe('--trusted-proxy', () => {
  test.each(['10.0.0.0/8', '127.0.0.1/32', 'fd00::/8', '::1/128'])('%s is a range of addresses', given => {
    expect(read('--trusted-proxy', given).trustedProxies.rules).toHaveLength(1);
  });

  test('can be given several times, and no proxy is trusted without it', () => {
    expect(
      read('--trusted-proxy', '10.0.0.0/8', '--trusted-proxy', '::1/128').trustedProxies.rules,
    ).toHaveLength(2);
    expect(read().trustedProxies.rules).toEqual([]);
  });

  test.each(['10.0.0.1', '10.0.0.0/33', '::/129', 'proxy.example.com/32', '10.0.0/8', '10.0.0.0/', '*'])(
    '%s is not a range of addresses and is rejected',
    given => {
      expect(() => read('--trusted-proxy', given)).toThrow(
        new UsageError(
          `--trusted-proxy ${given} is not a range of addresses in CIDR notation, such as 10.0.0.0/8, 127.0.0.1/32 or fd00::/8`,
        ),
      );
    },
  );
});

describe('one port for both listeners', () => {
  const start = async (host: string, internalHost: string) => {
    const folder = createTempDirectory();
    const port = await findFreePort();
    const addresses = { publicAddress: { host, port }, internalAddress: { host: internalHost, port } };
    try {
      const app = await startApp({ ...testConfig(folder.path), ...addresses }, () => {});
      await app.close();
      return [app.publicUrl, app.internalUrl].map(url => new URL(url).hostname);
    } finally {
      folder.remove();
    }
  };

  test('opens one listener on the public host', async () => {
    expect(await start('0.0.0.0', '127.0.0.1')).toEqual(['0.0.0.0', '0.0.0.0']);
  });

  test.each(['127.0.0.2', '127.0.0.1'])(
    'is a usage error if --internal-host %s differs from --host, because it would be ignored',
    internalHost => {
      const hosts = ['--host', '0.0.0.0', '--internal-host', internalHost];
      expect(() => read('--port', '80', '--internal-port', '80', ...hosts)).toThrow(UsageError);
      expect(() => read('--port', '80', '--internal-port', '81', ...hosts)).not.toThrow();
    },
  );

  test('is a usage error with a certificate for the internal listener, which would be ignored', () => {
    const tls = ['--internal-tls-cert', 'a.pem', '--internal-tls-key', 'b.pem'];
    expect(() => read('--port', '80', '--internal-port', '80', ...tls)).toThrow(
      /--internal-tls-cert has no effect/,
    );
    expect(read('--port', '80', '--internal-port', '81', ...tls)).toMatchObject({
      tls: undefined,
      internalTls: { cert: 'a.pem', key: 'b.pem' },
    });
  });
});
