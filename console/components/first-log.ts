// How to send a log record, for an empty store or log kind.
import { fetchInternalUrl } from '../api/client.ts';
import { h, replaceChildren } from '../dom.ts';
import { createCopyButton } from './controls.ts';

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
  const send = fetchInternalUrl().then(
    url =>
      `curl -X POST '${url}/api/logs?source_name=${source}' -H "X-API-KEY: $DENDRO_TOKEN" -H 'Content-Type: application/json' -d '${record}'`,
  );
  return [
    h('h2', {}, title),
    h('p', {}, `${reason}Create a token for senders on the server:`),
    createCommand(Promise.resolve(createToken), 'Copy the first command'),
    h('p', {}, 'Then send a record:'),
    createCommand(send, 'Copy the second command'),
    h(
      'p',
      { class: 'muted' },
      'The record can be queried within seconds. The address is that of the internal listener as the server knows it; from another machine or through a proxy, it can be another one.',
    ),
  ];
}

export function createStoreHelp(kind: string, project: string): HTMLElement[] {
  const reason = 'The store has no records yet that your token can read. ';
  return createFirstLogHelp(kind, project, 'Send your first log', reason);
}

function createCommand(command: Promise<string>, copyLabel: string): HTMLElement {
  const host = h('div', { class: 'command' });
  void command.then(text => {
    const button = createCopyButton('Copy', () => text);
    button.setAttribute('aria-label', copyLabel);
    replaceChildren(host, h('code', {}, text), button);
  });
  return host;
}
