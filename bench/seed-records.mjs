// A store full of records, the same on every run but for the time they end at: 2,000 projects whose sizes follow
// Zipf's law, so that the largest has about 2,000 times the records of the smallest. The records go through the
// store's own append and lie in the file as the service would have laid them.
import { toLogLines } from '../dist/log-line.js';
import { openStore } from '../dist/store/open-store.js';

const SEED = 20_240_229;
const PROJECT_COUNT = 2000;
const DAYS = 90;
const BATCH_SIZE = 20_000;
/** Records reach beyond now, since the shortest windows have to stay full while the measuring goes on. */
const MINUTES_AHEAD = 20;

/** Made anew on every call and always alike, the largest first. */
export function listProjects() {
  const random = makeRandom(SEED);
  return Array.from({ length: PROJECT_COUNT }, () => letters(random, 20));
}

export const FUNCTION_IDS = ['send-mail', 'resize-image', 'hello', 'checkout', 'sync-orders'];

export async function seedStore(storeOptions, recordsPerKind, report) {
  const projects = listProjects();
  const store = await openStore(storeOptions);
  try {
    for (const [kind, makeRecord] of [
      ['edge', edgeRecord],
      ['function_edge', functionEdgeRecord],
    ]) {
      const batches = recordBatches(kind, projects, recordsPerKind, makeRecord, done =>
        report(`${kind}: ${done.toLocaleString('en')} of ${recordsPerKind.toLocaleString('en')} records`),
      );
      await store.append(batches);
    }
  } finally {
    await store.close();
  }
}

/** In the order of time, as logs arrive. */
async function* recordBatches(kind, projects, count, makeRecord, report) {
  const random = makeRandom(SEED + 1);
  const pickProject = zipfPicker(projects, random);
  const spanMicros = (DAYS * 24 * 60 + MINUTES_AHEAD) * 60e6;
  const endMicros = (Date.now() + MINUTES_AHEAD * 60_000) * 1000;
  const stepMicros = spanMicros / count;
  for (let start = 0; start < count; start += BATCH_SIZE) {
    const length = Math.min(BATCH_SIZE, count - start);
    const records = Array.from({ length }, (_, offset) => {
      const timestampMicros = Math.floor(endMicros - spanMicros + (start + offset + random()) * stepMicros);
      return makeRecord({ timestampMicros, project: pickProject(), id: uuid(random), random });
    });
    yield toLogLines(kind, records);
    report(start + length);
  }
}

const PATHS = [
  '/rest/v1/orders?select=*&limit=20',
  '/rest/v1/profiles?id=eq.17',
  '/auth/v1/token?grant_type=refresh_token',
  '/auth/v1/user',
  '/storage/v1/object/public/avatars/17.png',
  '/realtime/v1/websocket',
  '/functions/v1/hello',
];
const STATUS_CODES = [200, 200, 200, 200, 201, 204, 304, 401, 404, 500];

function edgeRecord({ timestampMicros, project, id, random }) {
  const target = pick(PATHS, random);
  const [path] = target.split('?');
  const host = `${project}.platform.example`;
  const status = pick(STATUS_CODES, random);
  const ip = `203.0.113.${Math.floor(random() * 256)}`;
  const metadata = {
    request: {
      method: 'GET',
      host,
      path,
      url: `https://${host}${target}`,
      headers: {
        user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101',
        x_forwarded_for: ip,
        accept: '*/*',
      },
      cf: {
        country: 'DE',
        city: 'Berlin',
        asOrganization: 'Example Net',
        colo: 'TXL',
        tlsVersion: 'TLSv1.3',
      },
    },
    response: {
      status_code: status,
      origin_time: Math.floor(random() * 300),
      headers: { cf_ray: hex(random, 16) },
    },
  };
  return {
    id,
    timestampMicros,
    project,
    eventMessage: `GET | ${status} | ${ip} | https://${host}${target}`,
    metadata: JSON.stringify(metadata),
    lifted: { url: metadata.request.url, path },
  };
}

function functionEdgeRecord({ timestampMicros, project, id, random }) {
  const functionId = pick(FUNCTION_IDS, random);
  const status = pick(STATUS_CODES, random);
  const executionTimeMs = Math.round(20 / (1 - random() * 0.99)); // most around 30 ms, a few up to 2 s
  const metadata = {
    project_ref: project,
    function_id: functionId,
    execution_time_ms: executionTimeMs,
    deployment_id: `${project}_${functionId}_7`,
    request: { method: 'POST', pathname: `/functions/v1/${functionId}` },
    response: { status_code: status },
  };
  return {
    id,
    timestampMicros,
    project,
    eventMessage: `POST | ${status} | https://${project}.platform.example/functions/v1/${functionId}`,
    metadata: JSON.stringify(metadata),
    lifted: { function_id: functionId, execution_time_ms: executionTimeMs, status_code: status },
  };
}

/** The n-th project gets a share of 1/n. */
function zipfPicker(projects, random) {
  const bounds = [];
  let total = 0;
  for (let rank = 1; rank <= projects.length; rank++) {
    total += 1 / rank;
    bounds.push(total);
  }
  return () => {
    const mark = random() * total;
    let low = 0;
    let high = bounds.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bounds[middle] > mark) high = middle;
      else low = middle + 1;
    }
    return projects[low];
  };
}

/** mulberry32: small, fast, and the same on every machine. Numbers from 0 to below 1. */
export function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick(values, random) {
  return values[Math.floor(random() * values.length)];
}

function letters(random, length) {
  let text = '';
  while (text.length < length) text += String.fromCharCode(97 + Math.floor(random() * 26));
  return text;
}

function hex(random, length) {
  let digits = '';
  while (digits.length < length)
    digits += Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return digits.slice(0, length);
}

function uuid(random) {
  const digits = hex(random, 32);
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8${digits.slice(17, 20)}-${digits.slice(20)}`;
}
