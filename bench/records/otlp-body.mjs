// The records of sent-records.mjs as the body of an OTLP request, in protobuf.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { createLines } from './sent-records.mjs';

const SCHEMA = join(import.meta.dirname, '..', '..', 'test', 'support', 'otlp-logs.proto');

export const otlpTypes = protobuf.parse(readFileSync(SCHEMA, 'utf8')).root;

/** @param {number} count */
export function createOtlpBody(count) {
  const request = otlpTypes.lookupType('ExportLogsServiceRequest');
  const logRecords = createLines(count).map(line => {
    const { timestamp, project, event_message, metadata } = JSON.parse(line);
    return {
      timeUnixNano: `${timestamp}000`,
      severityNumber: 9,
      severityText: 'INFO',
      traceId: Buffer.from(crypto.randomUUID().replaceAll('-', ''), 'hex'),
      body: { stringValue: event_message },
      attributes: toKeyValues({ project, ...metadata }),
    };
  });
  const attributes = toKeyValues({
    'service.name': 'edge',
    'service.version': '1.2.3',
    'host.name': 'edge-7',
  });
  const resourceLogs = [{ resource: { attributes }, scopeLogs: [{ scope: { name: 'edge' }, logRecords }] }];
  return Buffer.from(request.encode(request.fromObject({ resourceLogs })).finish());
}

/**
 * @param {Readonly<Record<string, unknown>>} fields
 * @returns {{ key: string, value: object }[]}
 */
function toKeyValues(fields) {
  return Object.entries(fields).map(([key, value]) => ({ key, value: toAnyValue(value) }));
}

/** @param {unknown} value */
function toAnyValue(value) {
  if (typeof value === 'number') return { intValue: value };
  if (typeof value === 'string') return { stringValue: value };
  return { kvlistValue: { values: toKeyValues(/** @type {Record<string, unknown>} */ (value)) } };
}
