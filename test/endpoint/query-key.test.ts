import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EndpointDefinition } from '../../src/endpoint/definition.ts';
import { createQueryKey, endpointIdOf } from '../../src/endpoint/query-key.ts';
import type { BoundValues } from '../../src/store/store.ts';

type Fields = Pick<EndpointDefinition, 'id' | 'parameters'>;

const parametersOf = (names: readonly string[], type = 'text') =>
  Object.fromEntries(names.map(name => [name, { type }])) as unknown as EndpointDefinition['parameters'];

// An exact key: it is part of the checksum of cursors, so another format would make existing cursors invalid.
test('a query key contains the endpoint, the pinned projects and the parameters except the cursor', () => {
  const parameters = {
    ...parametersOf(['project', 'function_id']),
    ...parametersOf(['cursor'], 'cursor'),
  };
  const values: BoundValues = { project: { type: 'text', value: 'abc' } };
  const key = createQueryKey({ id: 'e', parameters }, values, ['abc']);
  expect(key).toBe('[1,"e",["abc"],["project","abc"],["function_id",null]]');
  expect(createQueryKey({ id: 'e', parameters: {} }, {})).toBe('[1,"e",null]');
});

test('different queries have different keys, and a key has the id of its endpoint', () => {
  const text = fc.oneof(fc.constantFrom('', 'a', 'null', '"],["b","'), fc.string());
  const query = fc.record({
    id: text,
    pin: fc.option(fc.array(text, { maxLength: 2 }), { nil: undefined }),
    values: fc.dictionary(text, fc.oneof(text, fc.constant(null)), { maxKeys: 3 }),
  });
  const keyOf = ({
    id,
    pin,
    values,
  }: {
    id: string;
    pin: string[] | undefined;
    values: Record<string, string | null>;
  }) => {
    const fields: Fields = { id, parameters: parametersOf(Object.keys(values)) };
    const bound = Object.entries(values).map(([name, value]) => [name, { type: 'text', value }]);
    return createQueryKey(fields, Object.fromEntries(bound), pin);
  };
  fc.assert(
    fc.property(query, query, (one, other) => {
      const list = ({ id, pin, values }: typeof one) => [id, pin, Object.entries(values)];
      const isSame = JSON.stringify(list(one)) === JSON.stringify(list(other));
      expect(keyOf(one) === keyOf(other)).toBe(isSame);
      expect(endpointIdOf(keyOf(one))).toBe(one.id);
    }),
  );
});
