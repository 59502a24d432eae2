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
