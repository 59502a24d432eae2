// What most tests of the HTTP routes need: an application, its tokens and custom endpoints. Each is created before the tests of the
// file or describe block in which it is called, and removed after them.
import { afterAll, beforeAll } from 'vitest';
import type { ServeConfig } from '../../src/config.ts';
import type { Timer } from '../../src/system/timer.ts';
import { startTestApp, type TestApp } from './app.ts';
import { type CustomEndpoints, writeEndpointFolders } from './custom-endpoints.ts';
import { prepareTokens, type TestTokens, type TokenSpec } from './tokens.ts';

/** The application is available in hooks and tests. */
export function useApp(overrides?: Partial<ServeConfig>, timer?: Timer): TestApp {
  let app: TestApp | undefined;
  beforeAll(async () => {
    app = await startTestApp(overrides, timer);
  });
  afterAll(() => app?.close());
  return new Proxy({} as TestApp, { get: (_, name) => Reflect.get(app ?? {}, name) });
}

export function useTokens<Name extends string>(specs: Readonly<Record<Name, TokenSpec>>): TestTokens<Name> {
  const { write, ...tokens } = prepareTokens(specs);
  beforeAll(write);
  afterAll(tokens.remove);
  return tokens;
}

export function useEndpoints(folders: Parameters<typeof writeEndpointFolders>[0]): CustomEndpoints {
  const endpoints = writeEndpointFolders(folders);
  afterAll(() => endpoints.remove());
  return endpoints;
}
