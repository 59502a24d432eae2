// How to send a log record, for an empty store or log kind.
import { h } from '../dom.ts';
import { createCopyButton } from './controls.ts';

/** The default of --internal-port. The public API does not name the address of the internal listener. */
const INTERNAL_PORT = 4001;

const createRecord: Readonly<Record<string, (project: string) => object>> = {
  edge: project => ({
    project,
    event_message: 'GET /rest/v1/hello 200',
    metadata: { request: { method: 'GET', path: '/rest/v1/hello' }, response: { status_code: 200 } },
  }),
  function_edge: project => ({
    event_message: 'POST hello 200',
    metadata: {
      project_ref: project,
      function_id: 'hello',
      execution_time_ms: 42,
      response: { status_code: 200 },
    },
  }),
};

const createPlainRecord = (project: string): object => ({
  project,
  event_message: 'hello',
  metadata: { level: 'info' },
});

/** `project` may be empty: then the record has the project `my-project`. `reason` is a text before the instructions. */
export function createFirstLogHelp(kind: string, project: string, title: string, reason = ''): HTMLElement[] {
  const source = kind === 'all' ? 'edge' : kind;
  const createToken = 'DENDRO_TOKEN=$(dendro token create --name sender --scope ingest)';
  const create = createRecord[source] ?? createPlainRecord;
  const record = JSON.stringify(create(project || 'my-project')).replaceAll("'", "'\\''");
  const url = `http://${location.hostname}:${INTERNAL_PORT}/api/logs?source_name=${source}`;
  const send = `curl -X POST '${url}' -H "X-API-KEY: $DENDRO_TOKEN" -H 'Content-Type: application/json' -d '${record}'`;
  return [
    h('h2', {}, title),
    h('p', {}, `${reason}Create a token for senders on the server:`),
    createCommand(createToken, 'Copy the first command'),
    h('p', {}, 'Then send a record:'),
    createCommand(send, 'Copy the second command'),
    h(
      'p',
      { class: 'muted' },
      `The record can be queried within seconds. Logs go to the internal listener: port ${INTERNAL_PORT} of the server, unless `,
      h('code', {}, '--internal-host'),
      ' or ',
      h('code', {}, '--internal-port'),
      ' say otherwise.',
    ),
  ];
}

export function createStoreHelp(kind: string, project: string): HTMLElement[] {
  const reason = 'The store has no records yet that your token can read. ';
  return createFirstLogHelp(kind, project, 'Send your first log', reason);
}

function createCommand(command: string, copyLabel: string): HTMLElement {
  const button = createCopyButton('Copy', () => command);
  button.setAttribute('aria-label', copyLabel);
  return h('div', { class: 'command' }, h('code', {}, command), button);
}
