// The composition root: makes everything from a configuration and hands out what can be closed.
import type { Clock } from './clock.ts';
import type { Address, ServeConfig } from './config.ts';
import { checkCatalog, loadCatalog } from './endpoint/catalog.ts';
import { internalRoutes } from './http/internal.ts';
import { type Listener, listen, type Route } from './http/listener.ts';
import { type PublicParts, publicRoutes, type Service } from './http/public.ts';
import type { Observe } from './observe/event.ts';
import { openStore } from './store/open-store.ts';
import type { Store } from './store/store.ts';
import { type FirstToken, makeFirstToken } from './token/first-token.ts';
import { ALL_SCOPES, hashSecret, type Token } from './token/token.ts';
import { readTokenFile } from './token/token-file.ts';
import { makeTokenSet } from './token/token-set.ts';
import { readVersion } from './version.ts';

export interface App {
  readonly publicUrl: string;
  readonly internalUrl: string;
  readonly store: Store;
  /** The token made at the very first start. */
  readonly firstToken: FirstToken | undefined;
  /** Lets running calls finish, then closes the store. Closing twice is fine. */
  close(): Promise<void>;
}

/** Listens at once, and answers 503 until the store is open. */
export async function startApp(config: ServeConfig, clock: Clock, observe: Observe): Promise<App> {
  const version = readVersion();
  observe({ type: 'starting', version, dataFolder: config.store.dataFolder });
  const catalog = loadCatalog(config.endpointFolders, config.storeName);
  let service: Service | undefined;
  let state: ReturnType<PublicParts['state']> = 'starting';
  const parts: PublicParts = {
    version,
    storeName: config.storeName,
    catalog,
    service: () => service,
    state: () => state,
  };

  const closers: (() => Promise<void>)[] = [];
  let closing: Promise<void> | undefined;
  const close = () => {
    state = 'unavailable';
    service = undefined;
    closing ??= closers.reduce((before, closer) => before.then(closer), Promise.resolve());
    return closing;
  };
  const open = async (name: 'public' | 'internal', address: Address, routes: readonly Route[]) => {
    const listener = await listen(name, address, routes, observe);
    closers.push(listener.close);
    return listener;
  };

  try {
    const [publicListener, internalListener] = await openListeners(config, parts, open);
    const store = await openStore(config.store);
    closers.push(store.close);
    await checkCatalog(catalog, store);
    const firstToken = config.apiKey === undefined ? makeFirstToken(config.tokensFile, clock) : undefined;
    service = { store, clock, tokens: makeTokenSet(readTokens(config)) };
    state = 'ok';
    observe({ type: 'listening', listener: 'public', url: publicListener.url });
    observe({ type: 'listening', listener: 'internal', url: internalListener.url });
    return { publicUrl: publicListener.url, internalUrl: internalListener.url, store, firstToken, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Given the same address, both share one listener. */
async function openListeners(
  { publicAddress, internalAddress }: ServeConfig,
  parts: PublicParts,
  open: (name: 'public' | 'internal', address: Address, routes: readonly Route[]) => Promise<Listener>,
): Promise<[Listener, Listener]> {
  if (internalAddress.port !== 0 && internalAddress.port === publicAddress.port) {
    const shared = await open('public', publicAddress, [...publicRoutes(parts), ...internalRoutes(parts)]);
    return [shared, shared];
  }
  return [
    await open('public', publicAddress, publicRoutes(parts)),
    await open('internal', internalAddress, internalRoutes(parts)),
  ];
}

function readTokens({ tokensFile, apiKey }: ServeConfig): Token[] {
  const tokens: Token[] = [...readTokenFile(tokensFile)];
  if (apiKey !== undefined)
    tokens.push({ name: 'DENDRO_API_KEY', sha256: hashSecret(apiKey), scopes: ALL_SCOPES });
  return tokens;
}
