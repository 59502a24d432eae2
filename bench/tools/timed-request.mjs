// One timed HTTP request on a keep-alive connection.
import { request } from 'node:http';

/**
 * Sends a request and waits for the last byte of the response. Fails unless the status is 200. With `sql` it is a POST
 * with that body.
 * @param {string} url
 * @param {{ agent: import('node:http').Agent, apiKey?: string, sql?: string }} options
 * @returns {Promise<{ ms: number, body: string, cacheStatus: string, age: number }>}
 */
export function sendTimedRequest(url, options) {
  const { agent, apiKey, sql } = options;
  const headers = apiKey === undefined ? {} : { 'X-API-KEY': apiKey };
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const sent = request(url, { agent, headers, method: sql === undefined ? 'GET' : 'POST' }, response => {
      /** @type {Buffer[]} */
      const chunks = [];
      response.on('data', chunk => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const ms = performance.now() - start;
        const body = Buffer.concat(chunks).toString();
        if (response.statusCode !== 200) {
          reject(new Error(`${url} returned status ${response.statusCode}: ${body.slice(0, 500)}`));
          return;
        }
        const { age, 'cache-status': cacheStatus } = response.headers;
        resolve({ ms, body, cacheStatus: String(cacheStatus ?? ''), age: Number(age) });
      });
    });
    sent.on('error', error => {
      // The server closed an idle connection at the moment it was reused, so it has not seen the request.
      if (sent.reusedSocket && 'code' in error && error.code === 'ECONNRESET')
        sendTimedRequest(url, options).then(resolve, reject);
      else reject(error);
    });
    sent.end(sql);
  });
}
