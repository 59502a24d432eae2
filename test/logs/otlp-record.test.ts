import { describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { createOtlpRecord, type OtlpRecord, toIntakeRecords } from '../../src/logs/otlp-record.ts';
import type { JsonObject } from '../../src/system/parse-json.ts';

const toIntake = (
  fields: Partial<OtlpRecord>,
  {
    resource = {},
    scope = {},
    allowedKinds = LOG_KINDS,
  }: { resource?: JsonObject; scope?: JsonObject; allowedKinds?: readonly LogKind[] } = {},
) => {
  const record = { ...createOtlpRecord(), ...fields };
  const [result] = [
    ...toIntakeRecords([{ resource, scope, record }], { sourceName: undefined, allowedKinds }),
  ];
  return result as unknown as { source: string; value: Record<string, unknown> };
};

describe('fields of the record', () => {
  const metadataOf = (attributes: Record<string, unknown>, isSet = true) => {
    const fields = isSet && { traceId: '5b8e', spanId: 'eee1', severityText: 'ERROR' };
    const resource = isSet ? { 'service.name': 'edge' } : {};
    return toIntake({ ...fields, attributes }, { resource }).value['metadata'];
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
});

describe('the message', () => {
  const body = { id: 'r-1', project: 'abc', metadata: { level: 'info' } };

  test.each([
    ['a text body', { body: 'text', eventName: 'order.paid' }, 'text', { event_name: 'order.paid' }],
    ['the name of the event, if there is no body', { eventName: 'order.paid' }, 'order.paid', {}],
    ['the name of the event, if the body is a list', { body: [1], eventName: 'e' }, 'e', { body: [1] }],
    ['the name of the event, if the body is a key-value list', { body, eventName: 'e' }, 'e', body.metadata],
    ['the name of the event, if the body is 0', { body: 0, eventName: 'e' }, 'e', { body: 0 }],
    ['the name of the event, if the body is empty', { body: '', eventName: 'e' }, 'e', {}],
    [
      'the name of the event, if event_message is no text',
      { body: { event_message: 42 }, eventName: 'e' },
      'e',
      { 'body.event_message': 42 },
    ],
    [
      'the name of the event, if event_message is empty',
      { body: { event_message: '' }, eventName: 'e' },
      'e',
      {},
    ],
    ['the JSON text of a body without an event', { body: { a: 1 } }, '{"a":1}', {}],
    ['nothing, without body and event', {}, null, {}],
    [
      'event_message of a key-value list',
      { body: { event_message: 'own' }, eventName: 'e' },
      'own',
      { event_name: 'e' },
    ],
  ])('is %s', (_, fields, message, metadata) => {
    const { value } = toIntake(fields);
    expect([value['event_message'], value['metadata']]).toEqual([message, metadata]);
  });

  test('is the message of a key-value list with another name, which record.ts reads', () => {
    const { value } = toIntake({ body: { project: 'p', msg: 'hello', n: 1 }, eventName: 'e' });
    expect(value).toMatchObject({ event_message: null, msg: 'hello', metadata: { event_name: 'e' } });
  });

  test('is the message of a key-value list, which record.ts reads', () => {
    const { value } = toIntake({ body: { message: 'own' }, eventName: 'e' });
    expect(value).toMatchObject({ message: 'own', event_message: null, metadata: { event_name: 'e' } });
  });
});

describe('a body that is a key-value list', () => {
  test('has id, project, metadata and other fields of the record', () => {
    const { value } = toIntake({
      timeMicros: 1_794_648_600_123_456,
      body: { id: 'r-1', project: 'abc', metadata: [{ request: [{ method: 'GET' }] }], appname: 'edge' },
      eventName: 'GET /',
      attributes: { count: 1 },
    });
    expect(value).toEqual({
      id: 'r-1',
      project: 'abc',
      event_message: 'GET /',
      timestamp: 1_794_648_600_123_456,
      appname: 'edge',
      metadata: { request: [{ method: 'GET' }], count: 1 },
    });
  });

  test('has metadata that wins over attributes, severity and resource', () => {
    const metadata = { level: 'info', count: 2, resource: 'own' };
    const { value } = toIntake(
      { body: { metadata }, eventName: 'e', severityNumber: 17, attributes: { count: 1 } },
      { resource: { name: 'Logflare' } },
    );
    expect(value['metadata']).toEqual({ ...metadata, severity_number: 17 });
  });

  test('keeps metadata that is no object, and a timestamp if the record has none', () => {
    const { value } = toIntake({ body: { metadata: 'text', timestamp: '2026-11-14T12:00:00Z' } });
    expect(value).toMatchObject({ metadata: { metadata: 'text' }, timestamp: '2026-11-14T12:00:00Z' });
  });

  test('has fields that are kept with a prefix if their names have other values', () => {
    const body = { level: 'error', resource: '/orders', user: 2, code: 5, id: 'r-1', same: 'x', none: null };
    const { value } = toIntake(
      {
        body: { ...body, timestamp: '2026-11-14T12:00:00Z', project: 'of-body' },
        eventName: 'access',
        severityText: 'INFO',
        timeMicros: 1_794_648_600_123_456,
        attributes: { user: 1, same: 'x', none: 0 },
      },
      { resource: { 'service.namespace': 'shop' } },
    );
    expect(value).toMatchObject({ id: 'r-1', project: 'shop', code: 5, timestamp: 1_794_648_600_123_456 });
    expect(value['metadata']).toEqual({
      level: 'INFO',
      resource: { 'service.namespace': 'shop' },
      user: 1,
      same: 'x',
      none: 0,
      'body.level': 'error',
      'body.resource': '/orders',
      'body.user': 2,
      'body.timestamp': '2026-11-14T12:00:00Z',
      'body.project': 'of-body',
    });
  });

  test('loses to service.namespace and attributes when it names a project', () => {
    const body = { project: 'of-body' };
    const projectOf = (resource: JsonObject, attributes = {}) =>
      toIntake({ body, attributes }, { resource }).value['project'];
    expect(projectOf({ 'service.namespace': 'of-resource' })).toBe('of-resource');
    expect(projectOf({}, { project: 'of-attributes' })).toBe('of-attributes');
    expect(projectOf({})).toBe('of-body');
  });
});

describe('the source', () => {
  const sourceOf = (service: string, scope: string, allowedKinds?: readonly LogKind[]) =>
    toIntake(
      { body: 'm' },
      {
        resource: service ? { 'service.name': service } : {},
        scope: scope ? { name: scope } : {},
        ...(allowedKinds && { allowedKinds }),
      },
    ).source;

  test.each([
    ['storage', 'auth', 'storage'],
    ['Logflare', 'postgres.logs', 'postgres.logs'],
    ['', 'postgres.logs', 'postgres.logs'],
    ['checkout', 'payments', 'checkout'],
    ['', 'payments', 'payments'],
    ['', '', ''],
  ])('of service.name %j and scope %j is %j', (service, scope, expected) => {
    expect(sourceOf(service, scope)).toBe(expected);
  });

  test.each([
    ['storage', '', 'storage'], // rejected: the token may not send it
    ['checkout', '', 'function'],
    ['checkout', 'auth', 'function'], // a logger of the service
    ['', 'auth', 'auth'],
    ['', '', 'function'],
  ])(
    'of service.name %j and scope %j, with a token for functions only, is %j',
    (service, scope, expected) => {
      expect(sourceOf(service, scope, ['function'])).toBe(expected);
    },
  );
});
