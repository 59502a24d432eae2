// The door that the tests send records through: a fixed time, 90 days of retention, no pin.
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { parseExactJson } from '../../src/logs/exact-json.ts';
import { isRejection, type RecordRules, toRecord } from '../../src/logs/record.ts';
import type { Rejection } from '../../src/logs/rejection.ts';

/** 2026-11-14T09:30:00.123456Z */
export const NOW = 1_794_648_600_123_456;
export const DOOR: RecordRules = { nowMicros: NOW, retentionDays: 90 };

export function accept(json: unknown, kind: LogKind = 'postgres', door: RecordRules = DOOR): LogRecord {
  const result = send(json, kind, door);
  if (isRejection(result)) throw new Error(`rejected: ${result.code}: ${result.message}`);
  return result;
}

export function reject(json: unknown, door: RecordRules = DOOR): Rejection {
  const result = send(json, 'postgres', door);
  if (!isRejection(result)) throw new Error(`accepted: ${JSON.stringify(result)}`);
  return result;
}

/** Text is sent as it stands, any other value as its JSON. */
function send(json: unknown, kind: LogKind, door: RecordRules): LogRecord | Rejection {
  return toRecord(parseExactJson(typeof json === 'string' ? json : JSON.stringify(json)), kind, door);
}

export function metadataOf(record: LogRecord): unknown {
  return JSON.parse(record.metadata);
}
