// How to send the first log record, for an empty store.
import { h } from '../dom.ts';
import { createCopyButton } from './controls.ts';

export type FirstLogKind = 'edge' | 'function_edge';

/** The default of --internal-port. The public API does not name the address of the internal listener. */
const INTERNAL_PORT = 4001;

const createRecord: Readonly<Record<FirstLogKind, (project: string) => object>> = {
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

/** `project` may be empty: then the record has the project `my-project`. */
export function createFirstLogHelp(kind: FirstLogKind, project: string): HTMLElement[] {
  const createToken = 'DENDRO_TOKEN=$(dendro token create --name sender --scope ingest)';
  const record = JSON.stringify(createRecord[kind](project || 'my-project')).replaceAll("'", "'\\''");
  const url = `http://${location.hostname}:${INTERNAL_PORT}/api/logs?source_name=${kind}`;
  const send = `curl -X POST '${url}' -H "X-API-KEY: $DENDRO_TOKEN" -H 'Content-Type: application/json' -d '${record}'`;
  return [
    h('h2', {}, 'Send your first log'),
    h(
      'p',
      {},
      'The store has no records yet that your token can read. Create a token for senders on the server:',
    ),
    createCommand(createToken, 'Copy the first command'),
    h('p', {}, 'Then send a record:'),
    createCommand(send, 'Copy the second command'),
    h(
      'p',
      { class: 'muted' },
      `The record appears here within seconds. Logs go to the internal listener: port ${INTERNAL_PORT} of the server, unless `,
      h('code', {}, '--internal-host'),
      ' or ',
      h('code', {}, '--internal-port'),
      ' say otherwise.',
    ),
  ];
}

function createCommand(command: string, copyLabel: string): HTMLElement {
  const button = createCopyButton('Copy', () => command);
  button.setAttribute('aria-label', copyLabel);
  return h('div', { class: 'command' }, h('code', {}, command), button);
}
