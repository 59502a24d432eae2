// The file of --receivers: what is accepted, and what stops the start.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readReceivers } from '../../src/alert/receivers.ts';
import { useDirectory } from '../support/hooks.ts';

const directory = useDirectory();
const variables: Record<string, string> = {
  URL: 'https://hooks.example.com/secret-path',
  KEY: 'k',
  EMPTY: '',
};

function read(text: string, mode = 0o600) {
  const file = join(directory, 'receivers.yaml');
  writeFileSync(file, text);
  chmodSync(file, mode);
  return readReceivers(file, name => variables[name]);
}

test('texts get the values of environment variables', () => {
  const receivers = read(
    'receivers:\n  a: { type: slack, url: "$URL" }\n  b: { type: webhook, url: http://x/, secret: "$KEY" }\n',
  );
  expect([...receivers.values()]).toMatchObject([
    { name: 'a', type: 'slack', url: variables['URL'], redact: false },
    { name: 'b', type: 'webhook', secret: 'k' },
  ]);
});

test.each([
  [
    'receivers:\n  a: { type: mail, url: http://x }',
    'receivers.a.type: must be ("webhook" | "slack" | "alertmanager"), not "mail" at line 2',
  ],
  ['receivers:\n  a: { type: slack }', 'receivers.a.url: is missing at line 2'],
  [
    'receivers:\n  a: { type: slack, url: "$NONE" }',
    'receivers.a.url: the variable NONE is not set at line 2',
  ],
  [
    'receivers:\n  a: { type: slack, url: "$EMPTY" }',
    'receivers.a.url: the variable EMPTY is not set at line 2',
  ],
  [
    'receivers:\n  a: { type: slack, url: file:///etc/passwd }',
    'receivers.a.url: must be a URL with http or https at line 2',
  ],
  [
    'receivers:\n  a: { type: slack, url: http://u:p@x }',
    'receivers.a.url: contains a user name or a password; use authorization instead at line 2',
  ],
  [
    'receivers:\n  a: { type: webhook, url: http://x, secret: plain }',
    'must name an environment variable, such as $OPS_SECRET at line 2',
  ],
  [
    'receivers:\n  A: { type: slack, url: http://x }',
    'receivers.A: must be lower-case letters, digits, - and _ at line 2',
  ],
  ['receivers: {}\nother: 1', 'other: unknown key at line 2'],
  ['receivers: [', 'at line 1'],
  ['', 'receivers.yaml: is empty'],
])('%s is refused with the line and the reason', (text, message) => {
  expect(() => read(text)).toThrow(message);
});

test.each([0o644, 0o620, 0o602])('a file of mode %o is refused', mode => {
  expect(() => read('receivers: {}', mode)).toThrow(
    /receivers\.yaml: has mode 0\d+, so other users can read or change/,
  );
});

test('a file that the group can read is accepted, and a missing one is not', () => {
  expect(read('receivers: {}', 0o640).size).toBe(0);
  expect(() => readReceivers(join(directory, 'none.yaml'), () => undefined)).toThrow('none.yaml: is missing');
});
