import { describe, expect, test } from 'vitest';
import { createCacheKey } from '../../src/cache/cache-key.ts';

// Golden: a key that changes its form must change its version, too.
describe('a cache key', () => {
  test('holds its version, the endpoint, the pin and the parameters in the order of the definition', () => {
    const key = createCacheKey({
      endpointId: '0fbeca51-caaa-4f7d-83f0-8110aa708839',
      pinnedProject: undefined,
      parameters: [
        ['project', 'abc'],
        ['interval', 'daily'],
      ],
    });
    expect(key).toBe(
      '[1,"0fbeca51-caaa-4f7d-83f0-8110aa708839",null,["project","abc"],["interval","daily"]]',
    );
  });

  test('tells a parameter that was not given from the text null', () => {
    const keyOf = (value: string | null) =>
      createCacheKey({ endpointId: 'e', pinnedProject: undefined, parameters: [['function_id', value]] });
    expect(keyOf(null)).toBe('[1,"e",null,["function_id",null]]');
    expect(keyOf('null')).toBe('[1,"e",null,["function_id","null"]]');
  });

  test('cannot be forged by a value that looks like the rest of another key', () => {
    const keyOf = (a: string, b: string) =>
      createCacheKey({
        endpointId: 'e',
        pinnedProject: undefined,
        parameters: [
          ['a', a],
          ['b', b],
        ],
      });
    expect(keyOf('x"],["b","y', 'z')).not.toBe(keyOf('x', 'y'));
  });

  test('differs by the project that a token is pinned to', () => {
    const keyOf = (pinnedProject: string | undefined) =>
      createCacheKey({ endpointId: 'e', pinnedProject, parameters: [['project', 'abc']] });
    expect(keyOf('abc')).toBe('[1,"e","abc",["project","abc"]]');
    expect(keyOf('abc')).not.toBe(keyOf(undefined));
  });
});
