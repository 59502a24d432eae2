import { expect, test } from 'vitest';
import { createOtlpRecord, toIntakeRecords } from '../../src/logs/otlp-record.ts';

const metadataOf = (attributes: Record<string, unknown>, isSet = true) => {
  const record = {
    ...createOtlpRecord(),
    ...(isSet && { traceId: '5b8e', spanId: 'eee1', severityText: 'ERROR' }),
    attributes,
  };
  const resource = isSet ? { 'service.name': 'edge' } : {};
  const [result] = [...toIntakeRecords([{ resource, scope: {}, record }], 'edge')];
  return (result as unknown as { value: { metadata: unknown } }).value.metadata;
};

test('trace id, span id, level and resource of a record win over attributes with these names', () => {
  const attributes = { trace_id: 'fake', span_id: 7, level: 'debug', resource: 'host-1', other: 1 };
  expect(metadataOf(attributes)).toEqual({
    trace_id: '5b8e',
    span_id: 'eee1',
    level: 'ERROR',
    resource: { 'service.name': 'edge' },
    'attributes.trace_id': 'fake',
    'attributes.span_id': 7,
    'attributes.level': 'debug',
    'attributes.resource': 'host-1',
    other: 1,
  });
});

test('an attribute that repeats the field of the record is kept once', () => {
  expect(metadataOf({ trace_id: '5b8e' })).not.toHaveProperty(['attributes.trace_id']);
});

test('attributes stay as they are if the record does not set the fields', () => {
  const attributes = { trace_id: 'own', span_id: 7, level: 'debug', resource: 'host-1' };
  expect(metadataOf({ ...attributes }, false)).toEqual(attributes);
});
