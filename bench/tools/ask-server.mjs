// One timed call of a server.
import { request } from 'node:http';

/** From the call to the last byte of the answer, on a connection that stays open. With `sql` it is a POST of that. */
export function askServer(agent, url, apiKey, sql) {
  const headers = apiKey === undefined ? {} : { 'X-API-KEY': apiKey };
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const call = request(url, { agent, headers, method: sql === undefined ? 'GET' : 'POST' }, response => {
      const parts = [];
      response.on('data', data => parts.push(data));
      response.on('end', () => {
        const ms = performance.now() - start;
        const cacheStatus = response.headers['cache-status'] ?? '';
        const body = Buffer.concat(parts);
        if (response.statusCode !== 200)
          reject(new Error(`${url} answered ${response.statusCode}: ${body.subarray(0, 500)}`));
        else if (cacheStatus.includes('hit'))
          reject(new Error(`${url} was answered by the cache, not the store`));
        else resolve({ ms, body });
      });
      response.on('error', reject);
    });
    call.on('error', error => {
      // The server closed a connection that was idle, just as it was used again: nobody was asked yet.
      if (call.reusedSocket && error.code === 'ECONNRESET')
        askServer(agent, url, apiKey, sql).then(resolve, reject);
      else reject(error);
    });
    call.end(sql);
  });
}
