// The configuration of a server that a test starts in its own process. Imports nothing of vitest, so that other processes can use it.
import { BlockList } from 'node:net';
import { join } from 'node:path';
import { KEY_VARIABLES, type ServeConfig } from '../../src/config.ts';

export const API_KEY = 'test-api-key-of-the-suite';

export function testConfig(dataDirectory: string): ServeConfig {
  return {
    publicAddress: { host: '127.0.0.1', port: 0 },
    internalAddress: { host: '127.0.0.1', port: 0 },
    storeName: 'duckdb',
    store: testStoreOptions(dataDirectory),
    retentionDays: 90,
    maxDiskBytes: undefined,
    cacheBytes: 0, // most tests need every record immediately; tests of the cache enable it
    responseBytes: 16 * 1024 * 1024,
    unsentBytes: 128 * 1024 * 1024,
    minDownloadRate: 0, // the clients of tests read in real time, whatever the timer of the test
    intakeQueueBytes: 256 * 1024 * 1024,
    idempotencyBytes: 128 * 1024 * 1024,
    minUploadRate: 0, // the timer of most tests is too fast for it
    logFormat: undefined,
    accessLog: false,
    metricsOpen: false,
    corsOrigins: [],
    trustedProxies: new BlockList(),
    tls: undefined,
    endpointFolders: { builtIn: join(import.meta.dirname, '../../endpoints'), custom: undefined },
    tokensFile: join(dataDirectory, 'tokens.json'),
    environmentKeys: [{ name: 'DENDRO_API_KEY', secret: API_KEY, scopes: KEY_VARIABLES.DENDRO_API_KEY }],
  };
}

export function testStoreOptions(dataDirectory: string) {
  return {
    dataDirectory,
    memoryLimit: '500MB',
    queryConcurrency: 4,
    queryQueueLength: 64,
    queryTimeoutSeconds: 30,
  };
}
