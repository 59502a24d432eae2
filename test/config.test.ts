import { describe, expect, test } from 'vitest';
import { commands } from '../src/cli/commands.ts';
import { readInvocation, readServeConfig } from '../src/config.ts';
import { UsageError } from '../src/errors.ts';

const flags = commands.find(({ name }) => name === 'serve')?.flags ?? [];
const read = (...args: string[]) => readServeConfig(readInvocation(args, {}, flags));

describe('--cors-origin', () => {
  test.each([
    ['https://Dash.Example.com', 'https://dash.example.com'],
    ['https://dash.example.com:443', 'https://dash.example.com'],
    ['HTTP://localhost:3000', 'http://localhost:3000'],
  ])('%s is compared as browsers write it: %s', (given, origin) => {
    expect(read('--cors-origin', given).corsOrigins).toEqual([origin]);
  });

  test.each(['*', 'null', 'dash.example.com', 'https://dash.example.com/', 'https://a@b.com', 'https://a:b'])(
    '%s is no origin',
    given => {
      expect(() => read('--cors-origin', given)).toThrow(UsageError);
    },
  );
});

describe('one port for both listeners', () => {
  test('is one listener, on the public host', () => {
    const { publicAddress, internalAddress } = read('--host', '0.0.0.0', '--internal-port', '4000');
    expect([publicAddress.host, publicAddress.port, internalAddress.port]).toEqual(['0.0.0.0', 4000, 4000]);
  });

  test('and another internal host is refused: it would be passed over', () => {
    expect(() => read('--internal-host', '127.0.0.2', '--internal-port', '4000')).toThrow(UsageError);
  });

  test('that the system picks is two ports', () => {
    expect(
      read('--port', '0', '--internal-port', '0', '--internal-host', '127.0.0.2').internalAddress,
    ).toEqual({ host: '127.0.0.2', port: 0 });
  });
});
