// Edge records as a log shipper sends them: NDJSON lines of 856 bytes, newline included. Their content is the same in every run,
// except ids and timestamps.
import { createRandom, listProjects } from './dataset.mjs';

export const LINE_BYTES = 856;

const SEED = 7_021_986;

/**
 * `count` lines whose timestamps are 1 ms apart and end at the current time.
 * @param {number} count
 */
export function createLines(count) {
  const random = createRandom(SEED);
  const projects = listProjects();
  const endMicros = Date.now() * 1000;
  return Array.from({ length: count }, (_, index) => {
    const project = projects[Math.floor(random() ** 3 * projects.length)];
    const host = `${project}.platform.example`;
    const target = `/rest/v1/orders?id=eq.${Math.floor(random() * 1e6)}`;
    const ip = `203.0.113.${Math.floor(random() * 256)}`;
    const record = {
      id: crypto.randomUUID(),
      timestamp: endMicros - (count - index) * 1000,
      project,
      event_message: `GET | 200 | ${ip} | https://${host}${target}`,
      metadata: {
        request: {
          method: 'GET',
          host,
          path: '/rest/v1/orders',
          url: `https://${host}${target}`,
          headers: { user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101', x_forwarded_for: ip },
          cf: { country: 'DE', city: 'Berlin', colo: 'TXL', tlsVersion: 'TLSv1.3' },
        },
        response: { status_code: 200, origin_time: Math.floor(random() * 300) },
        trace: '',
      },
    };
    const missing = LINE_BYTES - 1 - JSON.stringify(record).length;
    while (record.metadata.trace.length < missing) record.metadata.trace += random().toString(16).slice(2);
    record.metadata.trace = record.metadata.trace.slice(0, missing);
    return `${JSON.stringify(record)}\n`;
  });
}
