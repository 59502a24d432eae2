// The URL of a listener in commands and links. A listener can be bound to an address that no client can use.

/** The URL of a listener as a client can use it. If it listens on all addresses of this machine, the host is `host`. */
export function toReachable(url: string, host = '127.0.0.1'): string {
  return url.replace(/\/\/(0\.0\.0\.0|\[::\])(?=:)/, () => `//${host}`);
}

/** The host name or address in a header Host, without the port, for a command in a shell; undefined: there is no valid one. */
export function hostOf(header = ''): string | undefined {
  return /^([\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.exec(header)?.[1];
}
