// One timed call of an endpoint.
import { get } from 'node:http';

/** From the call to the last byte of the answer, on a connection that stays open. */
export function askServer(agent, url, apiKey) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const request = get(url, { agent, headers: { 'X-API-KEY': apiKey } }, response => {
      let bytes = 0;
      response.on('data', data => {
        bytes += data.length;
      });
      response.on('end', () => {
        const ms = performance.now() - start;
        const cacheStatus = response.headers['cache-status'] ?? '';
        if (response.statusCode !== 200) reject(new Error(`${url} answered ${response.statusCode}`));
        else if (cacheStatus.includes('hit'))
          reject(new Error(`${url} was answered by the cache, not the store`));
        else resolve({ ms, bytes });
      });
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}
