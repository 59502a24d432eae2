// Records for the tests of the search: known words, statuses and times, texts that must not be run as HTML or as a formula, and
// several records with one timestamp.
import type { LogKind } from '../../../src/domain/log-columns.ts';
import { type LogLines, toLogLines } from '../../../src/domain/log-line.ts';
import type { LogRecord } from '../../../src/domain/log-record.ts';
import { edgeRecord, functionEdgeRecord, record } from '../../support/record.ts';

const MINUTE = 60_000_000n;

export const STATUSES = [200, 201, 404, 500, 503];
export const HTML = '<img src=x onerror=alert(1)>';
export const FORMULA = '=HYPERLINK("https://example.com")';
export const STACK_TRACE = 'division by zero\n  at divide (math.sql:3)\n    at main';

/**
 * Project `search`: 250 requests, one per minute; the newest one has a formula as its message, and HTML in its metadata. Postgres
 * records with a stack trace and a long array, and two function requests. Project `burst`: 250 requests of the same microsecond.
 * Project `traced`: a record of each kind; three of them have the id of a request.
 */
export async function* createSearchRecords(): AsyncGenerator<LogLines> {
  const now = BigInt(Date.now()) * 1000n;
  yield toLines('edge', [
    ...Array.from({ length: 250 }, (_, i) => createRequest('search', i, now - BigInt(i + 1) * MINUTE)),
    ...Array.from({ length: 250 }, (_, i) => createRequest('burst', i, now - 10n * MINUTE)),
  ]);
  yield toLines('postgres', [
    record({
      project: 'search',
      id: 'error',
      at: now - MINUTE,
      message: STACK_TRACE,
      metadata: {
        parsed: { error_severity: 'ERROR', user_name: 'api', query: 'select 1\n  / 0' },
        samples: Array.from({ length: 250 }, (_, i) => `sample ${i}`),
        few: ['one', 'two'],
      },
    }),
    record({
      project: 'search',
      id: 'log',
      at: now - 2n * MINUTE,
      message: 'checkpoint complete',
      metadata: { parsed: { error_severity: 'LOG', user_name: 'postgres' } },
    }),
  ]);
  yield toLines('function_edge', [
    createInvocation('hello', 200, now - MINUTE),
    createInvocation('report', 500, now - 2n * MINUTE),
  ]);
  const creators: Partial<Record<string, typeof record>> = {
    edge: edgeRecord,
    function_edge: functionEdgeRecord,
  };
  for (const [i, [kind, metadata]] of Object.entries(TRACED).entries()) {
    const at = now - BigInt(10 + i) * MINUTE;
    const options = { project: 'traced', id: `traced-${kind}`, at, message: `${kind} record`, metadata };
    yield toLines(kind as LogKind, [(creators[kind] ?? record)(options)]);
  }
}

export const RAY = '8f3a51c2d0e1f234-FRA';

/** The metadata of the records of project `traced`, by kind. */
const TRACED: Record<LogKind, Record<string, unknown>> = {
  edge: {
    request: [{ method: 'GET', path: '/a', headers: [{ cf_ray: RAY, 'odd key': 'odd value' }] }],
    response: { status_code: 503 },
    region: 'eu-west',
    retried: true,
  },
  postgres: { parsed: { error_severity: 'ERROR', detail: `failed for ${RAY}` } },
  function_edge: { function_id: 'hello', response: { status_code: 200 }, execution_time_ms: 5 },
  function: { function_id: 'hello', level: 'warning', cf_ray: RAY },
  auth: { level: 'info', status: 401, path: '/token' },
  realtime: { level: 'info' },
  storage: { level: 'info', req: { method: 'GET', url: '/b' }, res: { statusCode: 404 } },
  rest: { level: 'info' },
  pooler: { level: 'info' },
};

function toLines(kind: LogKind, records: readonly LogRecord[]): LogLines {
  return toLogLines(kind, records);
}

function createRequest(project: string, index: number, at: bigint): LogRecord {
  const status = STATUSES[index % STATUSES.length] ?? 200;
  const method = index % 2 === 0 ? 'GET' : 'POST';
  const path = index % 10 === 0 ? '/auth/v1/token' : '/rest/v1/items';
  const isNewest = project === 'search' && index === 0;
  return edgeRecord({
    project,
    id: `${project}-${String(index).padStart(3, '0')}`,
    at,
    path,
    message: isNewest ? FORMULA : `${method} ${status} ${path} request ${index}`,
    metadata: {
      request: { method, path, host: `${project}.example.com`, headers: { note: isNewest ? HTML : 'none' } },
      response: { status_code: status },
    },
  });
}

function createInvocation(functionId: string, status: number, at: bigint): LogRecord {
  return functionEdgeRecord({
    project: 'search',
    id: `call-${functionId}`,
    at,
    functionId,
    status,
    ms: 120,
    message: `POST ${status} /functions/v1/${functionId}`,
    metadata: {
      project_ref: 'search',
      function_id: functionId,
      execution_time_ms: 120,
      request: { method: 'POST', pathname: `/functions/v1/${functionId}` },
      response: { status_code: status },
    },
  });
}
