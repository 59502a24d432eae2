// Events as lines for a person: readiness on standard output, everything else on standard error.
import type { Event, Observe } from './event.ts';

export function logTo(output: NodeJS.WritableStream, errors: NodeJS.WritableStream): Observe {
  return event => {
    if (event.type === 'listening') output.write(`${event.listener}: listening on ${event.url}\n`);
    else errors.write(`${describe(event)}\n`);
  };
}

function describe(event: Exclude<Event, { type: 'listening' }>): string {
  switch (event.type) {
    case 'stopping':
      return `${event.signal}: finishing what runs, then stopping`;
    case 'stopped':
      return 'stopped';
    case 'tokens_read':
      return `tokens read again: ${event.count}`;
    case 'tokens_unreadable':
      return `THE TOKENS FILE CANNOT BE READ; the last good tokens stay: ${(event.error as Error).message}`;
    case 'request_failed':
      return `${event.route} failed: ${event.error instanceof Error ? (event.error.stack ?? event.error.message) : event.error}`;
  }
}
