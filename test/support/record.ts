// Creates records for tests, with defaults for the fields that a test does not set.
import type { LogRecord } from '../../src/domain/log-record.ts';
import { micros } from './app.ts';

let nextId = 0;

interface RecordOptions {
  readonly id?: string;
  readonly at: string | bigint;
  readonly project?: string;
  readonly message?: string;
  readonly metadata?: Record<string, unknown>;
}

export function edgeRecord(
  options: RecordOptions & { readonly url?: string; readonly path?: string },
): LogRecord {
  const path = options.path ?? '/rest/v1/things';
  return record(options, {
    url: options.url ?? `https://${options.project ?? 'alpha'}.example${path}`,
    path,
  });
}

export function functionEdgeRecord(
  options: RecordOptions & {
    readonly functionId?: string;
    readonly ms?: number | null;
    readonly status?: number | null;
  },
): LogRecord {
  return record(options, {
    function_id: options.functionId ?? 'hello',
    execution_time_ms: options.ms === undefined ? 10 : options.ms,
    status_code: options.status === undefined ? 200 : options.status,
  });
}

export function record(options: RecordOptions, extracted: LogRecord['extracted'] = {}): LogRecord {
  return {
    id: options.id ?? `record-${nextId++}`,
    timestampMicros: Number(typeof options.at === 'string' ? micros(options.at) : options.at),
    project: options.project ?? 'alpha',
    eventMessage: options.message ?? 'something happened',
    metadata: JSON.stringify(options.metadata ?? {}),
    extracted,
  };
}
