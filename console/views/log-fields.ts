// What a log row shows of a record before it is opened, looked up in its metadata wherever senders put it.
import type { Row } from '../api/answer.ts';

export interface LogFields {
  readonly id: string;
  /** Unix microseconds. */
  readonly timestamp: number;
  readonly message: string;
  readonly status: number | undefined;
}

export function readLogFields(row: Row): LogFields {
  const { metadata } = row;
  return {
    id: String(row['id']),
    timestamp: Number(row['timestamp']),
    message: messageOf(row),
    status: toStatus(
      dig(metadata, 'response', 'status_code') ?? dig(metadata, 'status_code') ?? dig(metadata, 'status'),
    ),
  };
}

/** A record without a message is known by its request. */
function messageOf({ event_message: message, metadata }: Row): string {
  if (typeof message === 'string' && message !== '') return message;
  const request = [dig(metadata, 'request', 'method'), dig(metadata, 'request', 'path')];
  return request.filter(part => typeof part === 'string').join(' ') || '(no message)';
}

/** Some senders wrap every object into an array of one. */
function dig(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const key of path) {
    if (Array.isArray(found)) found = found[0];
    if (found === null || typeof found !== 'object') return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}

function toStatus(value: unknown): number | undefined {
  const status = Number(value ?? Number.NaN);
  return Number.isInteger(status) && status >= 100 && status <= 999 ? status : undefined;
}

/** The class that colours a status; its number stands beside the colour always. */
export function statusClass(status: number | undefined): string {
  if (status === undefined) return 'status status-none';
  return `status status-${Math.min(5, Math.floor(status / 100))}`;
}
