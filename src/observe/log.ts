// Writes events as log lines to standard error. A line has the time, the level, the event and a message, as JSON or as text; in
// the format `plain`, it has only the message. The event `listening` is a line of its own form on standard output.
import { SLOW_QUERY_MS } from '../domain/limits.ts';
import { type Clock, systemClock } from '../system/clock.ts';
import { systemTimer, type Timer } from '../system/timer.ts';
import { definitionOf, type Event, type Observe } from './event.ts';
import { LogThrottle } from './log-throttle.ts';

export const LOG_FORMATS = ['json', 'text'] as const;

/** `plain`: only the message, and no slow queries, for commands that a person runs. */
export type LogFormat = (typeof LOG_FORMATS)[number] | 'plain';

export function logTo(
  output: NodeJS.WritableStream,
  errors: NodeJS.WritableStream,
  format: LogFormat = 'plain',
  timer: Pick<Timer, 'now'> = systemTimer,
  clock: Clock = systemClock,
): Observe {
  // One for each event: the names of one event can be texts of clients, and must not use up the series of the others.
  const throttles = new Map<string, LogThrottle>();
  const throttleOf = (type: Event['type']) => {
    const throttle = throttles.get(type) ?? new LogThrottle(() => timer.now());
    throttles.set(type, throttle);
    return throttle;
  };
  return event => {
    if (event.type === 'listening') output.write(`${event.listener}: listening on ${event.url}\n`);
    const definition = definitionOf(event);
    if (definition.level === undefined) return;
    if (event.type === 'query_completed' && (format === 'plain' || !isSlow(event))) return;
    // Logs the next failure of this kind at once.
    if (event.type === 'apply_recovered') throttleOf('apply_failed').reset(event.kind);
    const { throttleBy } = definition;
    const suppressed = throttleBy === undefined ? 0 : throttleOf(event.type).admit(throttleBy(event));
    if (suppressed === undefined) return; // the throttle suppresses this event
    errors.write(`${formatLine(event, format, suppressed, clock)}\n`);
  };
}

function isSlow({ queuedMs, executedMs }: Extract<Event, { type: 'query_completed' }>): boolean {
  return queuedMs + executedMs >= SLOW_QUERY_MS;
}

function formatLine(event: Event, format: LogFormat, suppressed: number, clock: Clock): string {
  const { level = 'info', describe } = definitionOf(event);
  const message = describe(event);
  const text = suppressed === 0 ? message : `${message} (${suppressed} similar messages suppressed)`;
  if (format === 'plain') return text;
  const time = new Date(Number(clock() / 1000n)).toISOString();
  const name = event.type === 'query_completed' ? 'slow_query' : event.type;
  if (format === 'text') return `${time} ${level.padEnd(5)} ${name}: ${escapeControls(text)}`;
  const fields = { time, level, event: name, message, ...fieldsOf(event) };
  return JSON.stringify(suppressed === 0 ? fields : { ...fields, suppressed });
}

/**
 * Replaces control characters by spaces, except the line breaks within a stack trace. So no text from outside looks like a line
 * of its own.
 */
function escapeControls(text: string): string {
  return text.replace(/(?!\n +at )\p{Cc}/gu, ' ');
}

/** The details of an event, with names in snake case. Without the error, which is in `message`. */
function fieldsOf(event: Event): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(event)) {
    if (name === 'type' || name === 'error' || value === undefined) continue;
    const field = name === 'id' ? 'request_id' : name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`);
    fields[field] = typeof value === 'number' ? Math.round(value * 1000) / 1000 : value;
  }
  return fields;
}
