import { expect, test } from 'vitest';
import { ProtobufReader } from '../../src/logs/protobuf-reader.ts';
import { field } from '../support/otlp.ts';

test('bytes that are equal to the characters of a cached string, but not to its UTF-8, are decoded', () => {
  const cached = 'ñäääääa'; // has the same slot of the cache as its bytes in Latin-1
  const latin1 = Buffer.from(cached, 'latin1');
  const reader = new ProtobufReader(Buffer.concat([field(1, Buffer.from(cached)), field(1, latin1)]));
  expect(reader.next()).toBe(true);
  expect(reader.internedString()).toBe(cached);
  expect(reader.next()).toBe(true);
  expect(reader.internedString()).toBe(latin1.toString('utf8'));
});
