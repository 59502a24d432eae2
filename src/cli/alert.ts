// dendro alert list | test NAME | silence NAME --for DURATION | send-test RECEIVER: shows and tries the alerts of a running server.
import type { AlertView } from '../alert/alerts.ts';
import { type Invocation, nameOf } from '../config.ts';
import { parseDuration } from '../domain/duration.ts';
import { OperatorError, UsageError } from '../domain/errors.ts';
import { readAction } from './action.ts';
import type { Io } from './io.ts';
import { requestResult, requireServer, type Target } from './target.ts';
import { escapeForTerminal, escapeLinesForTerminal } from './terminal.ts';

const PATH = '/api/admin/alerts';

/** The positional argument that each action needs. */
const ACTIONS = { list: undefined, test: 'NAME', silence: 'NAME', 'send-test': 'RECEIVER' } as const;
type Action = keyof typeof ACTIONS;

export async function alert(invocation: Invocation, io: Io): Promise<void> {
  const { action, others } = readAction(invocation, ACTIONS);
  const argument = ACTIONS[action];
  if (others.length !== (argument === undefined ? 0 : 1))
    throw new UsageError(`usage: dendro alert ${[action, argument].filter(Boolean).join(' ')}`);
  const [name = ''] = others;
  const seconds = action === 'silence' ? readSeconds(invocation) : 0;
  const server = requireServer(invocation);
  const isJson = invocation.isOn('json');
  const output = await runAction(server, action, name, seconds);
  const text = isJson ? JSON.stringify(output.result, undefined, 2) : output.text;
  if (text !== '') io.stdout.write(escapeLinesForTerminal(`${text}\n`));
  if (output.problem !== undefined) throw new OperatorError(output.problem);
}

function readSeconds(invocation: Invocation): number {
  const text = invocation.text('for');
  const seconds = parseDuration(text ?? '');
  if (seconds === undefined)
    throw new UsageError(
      text === undefined
        ? '--for is required: the length of the silence, such as 30m, 2h or 1d; 0s ends it'
        : `${nameOf(invocation, 'for')} ${text} is not a duration such as 30m, 2h or 1d`,
    );
  return seconds;
}

interface Output {
  readonly result: unknown;
  readonly text: string;
  readonly problem?: string | undefined;
}

async function runAction(server: Target, action: Action, name: string, seconds: number): Promise<Output> {
  switch (action) {
    case 'list': {
      const result = (await request(server, PATH)) as readonly AlertView[];
      return { result, text: describeList(result) };
    }
    case 'test': {
      const result = (await request(server, `${PATH}/test`, { alert: name })) as TestResult;
      return { result, text: describeTest(result) };
    }
    case 'silence': {
      const result = (await request(server, `${PATH}/silence`, { alert: name, seconds })) as {
        silenced_until: string | null;
      };
      const until = result.silenced_until;
      return {
        result,
        text: until === null ? `${name} is not silenced` : `${name} is silenced until ${until}`,
      };
    }
    case 'send-test': {
      const result = (await request(server, `${PATH}/send-test`, { receiver: name })) as {
        error: string | null;
      };
      if (result.error === null) return { result, text: `${name} accepted a test notification` };
      return { result, text: '', problem: `${name} did not accept a test notification: ${result.error}` };
    }
  }
}

interface TestResult {
  readonly rows: readonly object[];
  readonly no_data: boolean;
  readonly notifications: readonly { readonly receiver: string; readonly body: unknown }[];
}

function describeList(alerts: readonly AlertView[]): string {
  if (alerts.length === 0) return 'no endpoint declares an alert';
  const lines = alerts.map(({ name, state, severity, silenced_until, last_evaluated_at, ...alert }) => {
    const notes = [
      ...(state === 'removed' ? [] : [`evaluated ${last_evaluated_at ?? 'never'}`]),
      ...(silenced_until === null ? [] : [`silenced until ${silenced_until}`]),
      ...(alert.undelivered === 0 ? [] : [`${alert.undelivered} notifications wait`]),
    ];
    const instances = alert.instances.map(
      each => `  ${each.state} since ${each.started_at}: ${escapeForTerminal(each.summary)}`,
    );
    return [`${name}: ${state} (${[severity, ...notes].join('; ')})`, ...instances].join('\n');
  });
  return lines.join('\n');
}

function describeTest({ rows, no_data, notifications }: TestResult): string {
  const hasProblem = rows.length > 0 || no_data;
  return [
    `${rows.length} rows${no_data ? '; no_data fires' : hasProblem ? '' : ': no problem'}`,
    ...rows.map(row => `  ${JSON.stringify(row)}`),
    ...notifications.map(({ receiver, body }) => `to ${receiver}:\n${JSON.stringify(body, undefined, 2)}`),
    ...(hasProblem && notifications.length === 0 ? ['no receiver would be notified'] : []),
  ].join('\n');
}

function request(server: Target, path: string, body?: object): Promise<unknown> {
  const init =
    body === undefined
      ? {}
      : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  return requestResult(server, path, init, { maxAttempts: 3, retryUnreachable: false });
}
