// The traffic of the synthetic platform: the requests and invocations of a period, and the records that all services log about
// them.
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { type LogLines, toLogLines } from '../domain/log-line.ts';
import { createIdSequence, isRejection, toRecord } from '../logs/record.ts';
import type { Store } from '../store/store.ts';
import {
  type Area,
  DAY,
  DEMO_PROJECTS,
  type DemoFunction,
  type DemoProject,
  isHeld,
  type Moment,
  PATHS,
  type TableLock,
} from './projects.ts';
import type { Random } from './random.ts';
import {
  createEdgeRecord,
  createFunctionEdgeRecord,
  createFunctionRecord,
  createPoolerRecord,
  createPostgresRecord,
  type DatabaseError,
  type DemoInvocation,
  type DemoRequest,
  SERVICE_RECORDS,
} from './records.ts';

/** All times are Unix milliseconds. */
export interface Period {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  /** The start of the demo. */
  readonly demoStartMs: number;
  /** 1 is the normal amount of traffic. */
  readonly scale: number;
}

export type DemoRecords = Record<LogKind, object[]>;

const createEmptyRecords = () =>
  Object.fromEntries(LOG_KINDS.map(kind => [kind, []])) as unknown as DemoRecords;

/** While a table is locked, clients send this many requests to it in addition to each request of the project. */
const RETRIES = 4;
const DATABASE_LINES_PER_SECOND = 1 / 600;

/** The period should be much shorter than an hour, because the rates at its middle apply to all of it. */
export function createTraffic({ fromMs, toMs, demoStartMs, scale }: Period, random: Random): DemoRecords {
  const momentAt = (ms: number): Moment => ({ ms, ago: (demoStartMs - ms) / 1000 });
  const middle = momentAt((fromMs + toMs) / 2);
  const scaledSeconds = ((toMs - fromMs) / 1000) * scale;
  const records = createEmptyRecords();
  const repeat = (perSecond: number, create: (moment: Moment) => void) => {
    for (let count = random.poisson(perSecond * scaledSeconds); count > 0; count--)
      create(momentAt(Math.floor(fromMs + random.next() * (toMs - fromMs))));
  };
  for (const project of DEMO_PROJECTS) {
    const traffic = new ProjectTraffic(project, random, records);
    const { lock, functions } = project;
    const requests = project.requestsPerSecond(middle);
    const invocations = project.invocationsPerSecond(middle);
    repeat(requests, moment => traffic.addRequest(moment));
    repeat(invocations, moment => traffic.addInvocation(moment));
    repeat(DATABASE_LINES_PER_SECOND + requests / 30, moment => traffic.addDatabaseLine(moment));
    if (lock === undefined) continue;
    if (isHeld(lock, middle)) {
      const caller = functions.find(({ calls }) => calls === lock.path);
      repeat(requests * RETRIES, moment => traffic.addRequest(moment, lock.path));
      repeat(invocations * RETRIES, moment => traffic.addInvocation(moment, caller));
    }
    const { startAgo, endAgo, migration } = lock;
    const lines: [ago: number, message: string][] = [
      [startAgo, `statement: ${migration}`],
      [endAgo, `duration: ${(startAgo - endAgo) * 1000}.217 ms`],
    ];
    for (const [ago, message] of lines) {
      const ms = demoStartMs - ago * 1000;
      if (fromMs <= ms && ms < toMs) traffic.addMigration(lock, ms, message);
    }
  }
  return records;
}

const AGENTS = ['Mozilla/5.0 (X11; Linux x86_64)', 'Mozilla/5.0 (iPhone)', 'okhttp/4.12.0', 'node'] as const;
const COUNTRIES = ['DE', 'US', 'BR', 'JP', 'IN', 'FR', 'KE'] as const;
const NETWORKS = ['192.0.2', '198.51.100', '203.0.113'] as const;
const ERRORS = [500, 503, 504, 503, 401, 404, 429] as const;
/** Of requests to a locked table. */
const LOCK_ERRORS = [500, 500, 503, 504] as const;
const STATEMENT_TIMEOUT_MS = 8_000;
const STATEMENT_TIMEOUT: DatabaseError = {
  sqlState: '57014',
  message: 'canceling statement due to statement timeout',
};
const MIGRATION_PID = 4242;

const roundMs = (ms: number) => Math.round(ms * 100) / 100;

/** Lines of the Postgres log that belong to no request: the message, and what differs from a line of a background process. */
const DATABASE_LINES: readonly [[string, object], ...[string, object][]] = [
  ['checkpoint starting: time', {}],
  ['checkpoint complete: wrote 41 buffers (0.3%)', {}],
  ['connection authorized: user=authenticator database=postgres', { user_name: 'authenticator' }],
  [
    'duplicate key value violates unique constraint "profiles_pkey"',
    {
      ...{ error_severity: 'ERROR', sql_state_code: '23505', user_name: 'authenticator' },
      query: 'insert into public.profiles (id, name) values ($1, $2)',
    },
  ],
];

/** Adds the records that the services of a project log about its requests and invocations. */
class ProjectTraffic {
  readonly #project: DemoProject;
  readonly #random: Random;
  readonly #records: DemoRecords;

  constructor(project: DemoProject, random: Random, records: DemoRecords) {
    this.#project = project;
    this.#random = random;
    this.#records = records;
  }

  /** A request from outside. Without a path: to any of the project's areas. */
  addRequest(moment: Moment, restPath?: string): void {
    const random = this.#random;
    const area = restPath === undefined ? random.pick(this.#project.areas) : 'rest';
    const method = area === 'auth' || random.chance(0.2) ? 'POST' : 'GET';
    const path = restPath ?? random.pick(PATHS[area]);
    this.#addApiRequest(area, moment, {
      id: this.#createId(moment),
      method,
      path,
      agent: random.pick(AGENTS),
    });
  }

  /** Without a function: of any function of the project. */
  addInvocation(moment: Moment, given?: DemoFunction): void {
    const random = this.#random;
    const { id: functionId, calls, medianMs, sigma } = given ?? this.#pickFunction();
    const id = this.#createId(moment);
    const called =
      calls === undefined
        ? undefined
        : this.#addApiRequest('rest', moment, { id, method: 'POST', path: calls, agent: 'Deno/2.1.4' });
    // The function returns 500 if its request to the API fails.
    const status = called === undefined ? this.#respond(moment, 200).status : called.status < 400 ? 200 : 500;
    const ownMs = random.duration(medianMs(moment), sigma);
    const invocation: DemoInvocation = {
      ref: this.#project.ref,
      id,
      functionId,
      ms: moment.ms,
      method: 'POST',
      path: `/functions/v1/${functionId}`,
      status,
      error: called?.error,
      durationMs: roundMs(ownMs + (called?.durationMs ?? 0)),
    };
    this.#records.function_edge.push(createFunctionEdgeRecord(invocation));
    if (this.#isLogged(moment, status)) this.#records.function.push(createFunctionRecord(invocation));
  }

  /** A line of the database or of its connection pooler that belongs to no request. */
  addDatabaseLine({ ms }: Moment): void {
    const { ref } = this.#project;
    if (this.#random.chance(0.5)) {
      const [message, parsed] = this.#random.pick(DATABASE_LINES);
      this.#records.postgres.push(createPostgresRecord(ref, ms, message, parsed));
    } else {
      const message = 'login attempt: db=postgres user=authenticator tls=TLSv1.3';
      this.#records.pooler.push(createPoolerRecord(ref, ms, 'LOG', message));
    }
  }

  /** What Postgres logs when the migration starts or, with its duration, when it ends. */
  addMigration({ migration }: TableLock, ms: number, message: string): void {
    this.#records.postgres.push(
      createPostgresRecord(this.#project.ref, ms, message, {
        ...{ user_name: 'postgres', process_id: MIGRATION_PID, application_name: 'migrations' },
        ...{ command_tag: 'ALTER TABLE', query: migration },
      }),
    );
  }

  #addApiRequest(
    area: Area,
    moment: Moment,
    { id, method, path, agent }: Pick<DemoRequest, 'id' | 'method' | 'path' | 'agent'>,
  ): DemoRequest {
    const random = this.#random;
    const success = area === 'realtime' ? 101 : area === 'rest' && method === 'POST' ? 201 : 200;
    const { status, durationMs, error } = this.#respond(moment, success, path);
    const request: DemoRequest = {
      ref: this.#project.ref,
      id,
      ms: moment.ms,
      durationMs,
      method,
      path,
      status,
      error,
      agent,
      // An address of a range that is reserved for documentation (RFC 5737).
      address: `${random.pick(NETWORKS)}.${Math.floor(random.next() * 254) + 1}`,
      country: random.pick(COUNTRIES),
    };
    this.#records.edge.push(createEdgeRecord(request));
    if (this.#isLogged(moment, status)) this.#records[area].push(SERVICE_RECORDS[area](request));
    if (error !== undefined) this.#addDatabaseError(request, error);
    return request;
  }

  /** How a request ends. Only those to a locked table take long. */
  #respond(moment: Moment, success: number, path = ''): Pick<DemoRequest, 'status' | 'durationMs' | 'error'> {
    const random = this.#random;
    const { lock, errorRate } = this.#project;
    const durationMs = random.duration(24, 0.7);
    if (lock === undefined || path !== lock.path || !isHeld(lock, moment) || random.chance(0.05))
      return { durationMs, status: random.chance(errorRate(moment)) ? random.pick(ERRORS) : success };
    const status = random.pick(LOCK_ERRORS);
    if (random.chance(0.7))
      return { status, durationMs: roundMs(STATEMENT_TIMEOUT_MS + durationMs), error: STATEMENT_TIMEOUT };
    const message = `could not obtain lock on relation "${lock.table}"`;
    return { status, durationMs, error: { sqlState: '55P03', message } };
  }

  /** PostgREST names its connection after the request, so that the lines of Postgres have the id of the request. */
  #addDatabaseError({ ref, id, ms, durationMs, method }: DemoRequest, error: DatabaseError): void {
    const { table = '' } = this.#project.lock ?? {};
    const process_id = 5_000 + Math.floor(this.#random.next() * 400);
    const parsed = {
      ...{ user_name: 'authenticator', process_id, application_name: `postgrest ${id}` },
      query:
        method === 'POST'
          ? `insert into public.${table} (item, quantity) values ($1, $2)`
          : `select * from public.${table} order by id limit $1`,
    };
    if (error === STATEMENT_TIMEOUT) {
      const mode = method === 'POST' ? 'RowExclusiveLock' : 'AccessShareLock';
      const message = `process ${process_id} still waiting for ${mode} on relation 16512 of database 5 after 1000.1 ms`;
      const detail = `Process holding the lock: ${MIGRATION_PID}.`;
      this.#records.postgres.push(createPostgresRecord(ref, ms + 1000, message, { ...parsed, detail }));
    }
    this.#records.postgres.push(
      createPostgresRecord(ref, Math.round(ms + durationMs), error.message, {
        ...{ ...parsed, error_severity: 'ERROR', sql_state_code: error.sqlState },
      }),
    );
  }

  #createId({ ms }: Moment): string {
    return `${ms.toString(16)}${Math.floor(this.#random.next() * 2 ** 32)
      .toString(16)
      .padStart(8, '0')}`;
  }

  /** Services log every failed request, and a sample of the others. */
  #isLogged({ ago }: Moment, status: number): boolean {
    return status >= 400 || this.#random.chance(ago < DAY ? 0.3 : 0.03);
  }

  #pickFunction(): DemoFunction {
    const { functions } = this.#project;
    let remaining = this.#random.next();
    const found = functions.find(({ share }) => {
      remaining -= share;
      return remaining < 0;
    });
    return found ?? functions[0];
  }
}

/** Seven days, and one more, because the first bucket of a 7-day window starts up to a day before the window. */
const HISTORY_DAYS = 8;
const PERIOD_MS = 60_000;
const PERIODS_PER_BATCH = 240;

/** Appends the records of the last days to the store, checked by the rules of the intake. Returns their number. */
export async function fillHistory(
  store: Store,
  { endMs, scale, random }: { readonly endMs: number; readonly scale: number; readonly random: Random },
): Promise<number> {
  const nowMicros = endMs * 1000;
  const context = { nowMicros, retentionDays: HISTORY_DAYS + 1, createId: createIdSequence(nowMicros) };
  let count = 0;
  async function* createBatches(): AsyncGenerator<LogLines> {
    const step = PERIODS_PER_BATCH * PERIOD_MS;
    for (let batchMs = endMs - HISTORY_DAYS * DAY * 1000; batchMs < endMs; batchMs += step) {
      const records = createEmptyRecords();
      for (let fromMs = batchMs; fromMs < Math.min(batchMs + step, endMs); fromMs += PERIOD_MS) {
        const period = { fromMs, toMs: Math.min(fromMs + PERIOD_MS, endMs), demoStartMs: endMs, scale };
        const created = createTraffic(period, random);
        for (const kind of LOG_KINDS) records[kind].push(...created[kind]);
      }
      for (const kind of LOG_KINDS) {
        const accepted = records[kind].flatMap(record => {
          const result = toRecord(record, kind, context);
          return isRejection(result) ? [] : [result];
        });
        count += accepted.length;
        if (accepted.length > 0) yield toLogLines(kind, accepted);
      }
    }
  }
  await store.append(createBatches());
  return count;
}
