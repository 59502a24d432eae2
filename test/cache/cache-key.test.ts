import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CacheKeyFields, createCacheKey, endpointIdOf } from '../../src/cache/cache-key.ts';

// An exact key: a change of the format must also change the version.
test('a cache key contains its version, the endpoint, the pinned projects and the parameters', () => {
  const parameters = [
    ['project', 'abc'],
    ['function_id', null],
  ] as const;
  const key = createCacheKey({ endpointId: 'e', pin: ['abc'], parameters });
  expect(key).toBe('[1,"e",["abc"],["project","abc"],["function_id",null]]');
  expect(createCacheKey({ endpointId: 'e', pin: undefined, parameters: [] })).toBe('[1,"e",null]');
});

test('different fields have different keys, and a key has the id of its endpoint', () => {
  const text = fc.oneof(fc.constantFrom('', 'a', 'null', '"],["b","'), fc.string());
  const fields: fc.Arbitrary<CacheKeyFields> = fc.record({
    endpointId: text,
    pin: fc.option(fc.array(text, { maxLength: 2 }), { nil: undefined }),
    parameters: fc.array(fc.tuple(text, fc.oneof(text, fc.constant(null))), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fields, fields, (one, other) => {
      const isSame = JSON.stringify(Object.values(one)) === JSON.stringify(Object.values(other));
      expect(createCacheKey(one) === createCacheKey(other)).toBe(isSame);
      expect(endpointIdOf(createCacheKey(one))).toBe(one.endpointId);
    }),
  );
});
