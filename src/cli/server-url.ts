// The address of a running server, as --url gives it.
import { UsageError } from '../domain/errors.ts';

/** Without a slash at its end. */
export function readServerUrl(text: string): string {
  if (!/^https?:\/\/[^/]/i.test(text) || !URL.canParse(text))
    throw new UsageError(`--url ${text} is not an address such as http://127.0.0.1:4001`);
  return text.replace(/\/+$/, '');
}
