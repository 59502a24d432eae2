import { expect, test } from 'vitest';
import { startLocalApp } from '../src/app.ts';
import { testConfig } from './support/config.ts';
import { useDirectory } from './support/hooks.ts';

const directory = useDirectory();

test('closes everything even if a part of it cannot be closed, and throws the reason', async () => {
  const start = (close: () => Promise<void>) =>
    startLocalApp(testConfig(directory), () => {}, {
      bodyParser: { parse: () => Promise.reject(new Error('not used')), close },
    });
  const app = await start(() => Promise.reject(new Error('the thread is gone')));
  await expect(app.close()).rejects.toThrow('the thread is gone');
  const next = await start(async () => {}); // the data directory is no longer locked
  await next.close();
});
