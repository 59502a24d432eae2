import { describe, expect, test } from 'vitest';
import { createCacheKey } from '../../src/cache/cache-key.ts';

// Exact keys: a change of the format must also change the version.
describe('a cache key', () => {
  test('contains its version, the endpoint, the pinned project and the parameters in the order of the definition', () => {
    const key = createCacheKey({
      endpointId: '0fbeca51-caaa-4f7d-83f0-8110aa708839',
      pin: undefined,
      parameters: [
        ['project', 'abc'],
        ['interval', 'daily'],
      ],
    });
    expect(key).toBe(
      '[1,"0fbeca51-caaa-4f7d-83f0-8110aa708839",null,["project","abc"],["interval","daily"]]',
    );
  });

  test('distinguishes an absent parameter from the text null', () => {
    const keyOf = (value: string | null) =>
      createCacheKey({ endpointId: 'e', pin: undefined, parameters: [['function_id', value]] });
    expect(keyOf(null)).toBe('[1,"e",null,["function_id",null]]');
    expect(keyOf('null')).toBe('[1,"e",null,["function_id","null"]]');
  });

  test('a value that looks like a part of a key does not create the key of other parameters', () => {
    const keyOf = (a: string, b: string) =>
      createCacheKey({
        endpointId: 'e',
        pin: undefined,
        parameters: [
          ['a', a],
          ['b', b],
        ],
      });
    expect(keyOf('x"],["b","y', 'z')).not.toBe(keyOf('x', 'y'));
  });

  test('is different for each pinned project', () => {
    const keyOf = (pin: string | undefined) =>
      createCacheKey({ endpointId: 'e', pin, parameters: [['project', 'abc']] });
    expect(keyOf('abc')).toBe('[1,"e","abc",["project","abc"]]');
    expect(keyOf('abc')).not.toBe(keyOf(undefined));
  });
});
