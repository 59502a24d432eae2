// Validates records in a fixed context: a fixed time of arrival, 90 days of retention, all projects.
import type { LogKind } from '../../src/domain/log-columns.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { parseExactJson } from '../../src/logs/exact-json.ts';
import { createIdSequence, isRejection, toRecord, type ValidationContext } from '../../src/logs/record.ts';
import type { Rejection } from '../../src/logs/rejection.ts';

/** 2026-11-14T09:30:00.123456Z */
export const NOW = 1_794_648_600_123_456;
export const CONTEXT: ValidationContext = {
  nowMicros: NOW,
  retentionDays: 90,
  createId: createIdSequence(NOW),
};

export function accept(
  json: unknown,
  kind: LogKind = 'postgres',
  context: ValidationContext = CONTEXT,
): LogRecord {
  const result = validate(json, kind, context);
  if (isRejection(result)) throw new Error(`unexpected rejection ${result.code}: ${result.message}`);
  return result;
}

export function reject(
  json: unknown,
  context: ValidationContext = CONTEXT,
  kind: LogKind = 'postgres',
): Rejection {
  const result = validate(json, kind, context);
  if (!isRejection(result)) throw new Error(`unexpectedly accepted: ${JSON.stringify(result)}`);
  return result;
}

/** Parses a string as JSON text. Any other value is stringified first. */
function validate(json: unknown, kind: LogKind, context: ValidationContext): LogRecord | Rejection {
  return toRecord(parseExactJson(typeof json === 'string' ? json : JSON.stringify(json)), kind, context);
}

export function metadataOf(record: LogRecord): unknown {
  return JSON.parse(record.metadata);
}
