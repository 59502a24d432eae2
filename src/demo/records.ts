// The records of each log kind, in the JSON format that log shippers send. The records of one request have the same request id,
// each kind in its own place.
import type { Area } from './projects.ts';

/** A request to the API of a project, as all services see it. */
export interface DemoRequest {
  readonly ref: string;
  readonly id: string;
  /** When it arrived, in Unix milliseconds. */
  readonly ms: number;
  readonly durationMs: number;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly agent: string;
  readonly address: string;
  readonly country: string;
  /** What Postgres reports. Undefined: no error, or one of another service. */
  readonly error?: DatabaseError | undefined;
}

export interface DatabaseError {
  readonly sqlState: string;
  readonly message: string;
}

export interface DemoInvocation extends Omit<DemoRequest, 'agent' | 'address' | 'country'> {
  readonly functionId: string;
}

const toIso = (ms: number) => new Date(ms).toISOString();
const endOf = ({ ms, durationMs }: Pick<DemoRequest, 'ms' | 'durationMs'>) =>
  toIso(Math.round(ms + durationMs));
const hostOf = (ref: string) => `${ref}.example.com`;
const databaseHostOf = (ref: string) => `db.${hostOf(ref)}`;
const levelOf = (status: number) => (status >= 500 ? 'error' : status >= 400 ? 'warning' : 'info');
/** The path that a service behind the gateway gets. */
const pathBehindGateway = (path: string) => path.replace(/^\/\w+\/v1/, '');

export function createEdgeRecord(request: DemoRequest): object {
  const { ref, id, ms, durationMs, method, path, status, agent, address, country } = request;
  const host = hostOf(ref);
  return {
    timestamp: toIso(ms),
    project: ref,
    event_message: `${method} ${status} ${path}`,
    metadata: {
      request: {
        method,
        host,
        path,
        url: `https://${host}${path}`,
        headers: { user_agent: agent, x_forwarded_for: address, x_request_id: id },
        cf: { country, tls_version: 'TLSv1.3' },
      },
      response: { status_code: status, origin_time: durationMs },
    },
  };
}

export function createFunctionEdgeRecord(invocation: DemoInvocation): object {
  const { ref, id, ms, durationMs, method, path, status, functionId } = invocation;
  return {
    timestamp: toIso(ms),
    event_message: `${method} ${status} ${path}`,
    metadata: {
      project_ref: ref,
      function_id: functionId,
      execution_id: id,
      execution_time_ms: durationMs,
      request: { method, pathname: path, host: hostOf(ref) },
      response: { status_code: status },
    },
  };
}

/** What the function prints: an error with its stack trace, or one line. */
export function createFunctionRecord(invocation: DemoInvocation): object {
  const { ref, id, durationMs, status, error, functionId } = invocation;
  const problem = error?.message ?? (status < 400 ? undefined : `unexpected response: ${status}`);
  const file = `file:///src/functions/${functionId}`;
  const stack = [
    `Error: ${problem}`,
    `    at send (${file}/client.ts:41:11)`,
    `    at async Server.handle (${file}/index.ts:17:20)`,
  ].join('\n');
  return {
    timestamp: endOf(invocation),
    event_message: problem === undefined ? `done in ${Math.round(durationMs)} ms` : stack,
    metadata: {
      ...{ project_ref: ref, function_id: functionId, execution_id: id },
      ...{ event_type: 'Log', level: problem === undefined ? 'info' : 'error', region: 'eu-central-1' },
    },
  };
}

/** A line of PostgREST's access log. */
function createRestRecord(request: DemoRequest): object {
  const { ref, id, method, path, status, agent, address, error } = request;
  return {
    timestamp: endOf(request),
    project: ref,
    event_message: `${address} - authenticator "${method} ${pathBehindGateway(path)} HTTP/1.1" ${status} "${agent}"`,
    metadata: {
      ...{ host: databaseHostOf(ref), level: levelOf(status), request_id: id },
      ...(error === undefined ? {} : { error: { code: error.sqlState, message: error.message } }),
    },
  };
}

function createAuthRecord(request: DemoRequest): object {
  const { ref, id, durationMs, method, path, status, address } = request;
  return {
    timestamp: endOf(request),
    project: ref,
    event_message: `${status}: request completed`,
    metadata: {
      ...{ host: hostOf(ref), level: levelOf(status), component: 'api', msg: 'request completed' },
      ...{ method, path: pathBehindGateway(path), status, request_id: id, remote_addr: address },
      duration: Math.round(durationMs * 1e6),
    },
  };
}

function createStorageRecord(request: DemoRequest): object {
  const { ref, id, durationMs, method, path, status, agent, address } = request;
  const url = pathBehindGateway(path);
  return {
    timestamp: endOf(request),
    event_message: `${method} | ${status} | ${address} | ${id} | ${url} | ${agent}`,
    metadata: {
      ...{ project: ref, level: levelOf(status), reqId: id, responseTime: durationMs },
      req: { method, url, hostname: hostOf(ref), remoteAddress: address },
      res: { statusCode: status },
    },
  };
}

function createRealtimeRecord(request: DemoRequest): object {
  const { ref, id, durationMs, status } = request;
  const message = status < 400 ? `CONNECTED in ${Math.round(durationMs)}ms` : `REFUSED with ${status}`;
  return {
    timestamp: endOf(request),
    event_message: `${message}: transport websocket, serializer V1`,
    metadata: {
      ...{ project: ref, level: levelOf(status), request_id: id },
      context: { application: 'realtime', module: 'RealtimeWeb.UserSocket' },
    },
  };
}

/** What the service behind the gateway logs about a request. Its log kind has the name of the area. */
export const SERVICE_RECORDS: Readonly<Record<Area, (request: DemoRequest) => object>> = {
  rest: createRestRecord,
  auth: createAuthRecord,
  storage: createStorageRecord,
  realtime: createRealtimeRecord,
};

/** A line of the Postgres log. `parsed` is what differs from a line of a background process. */
export function createPostgresRecord(ref: string, ms: number, message: string, parsed: object = {}): object {
  return {
    timestamp: toIso(ms),
    project: ref,
    event_message: message,
    metadata: {
      host: databaseHostOf(ref),
      parsed: { error_severity: 'LOG', sql_state_code: '00000', database_name: 'postgres', ...parsed },
    },
  };
}

export function createPoolerRecord(ref: string, ms: number, level: string, message: string): object {
  return {
    timestamp: toIso(ms),
    project: ref,
    event_message: message,
    metadata: { host: databaseHostOf(ref), level },
  };
}
