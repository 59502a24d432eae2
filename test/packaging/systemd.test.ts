// The systemd unit, checked by systemd's own tools. systemd itself does not run here.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { createTempDirectory } from '../support/process.ts';

const UNIT = join(import.meta.dirname, '../../deploy/systemd/dendro.service');
const text = readFileSync(UNIT, 'utf8');

let root: ReturnType<typeof createTempDirectory>;
beforeEach(() => {
  expect(ensurePrograms({ 'systemd-analyze': 'systemd' }), 'missing programs that this test needs').toEqual(
    [],
  );
  root = createTempDirectory();
});
afterEach(() => root.remove());

const analyze = (...args: string[]) => spawnSync('systemd-analyze', args, { encoding: 'utf8' });

/** What `systemd-analyze verify` reports about a unit, in a root directory where the program is installed. */
function verify(unit: string): string {
  const units = join(root.path, 'etc/systemd/system');
  const programs = join(root.path, 'usr/local/bin');
  const shells = join(root.path, 'bin');
  for (const directory of [units, programs, shells]) mkdirSync(directory, { recursive: true });
  cpSync('/bin/sh', join(shells, 'sh'), { dereference: true });
  // The units that every service depends on.
  cpSync('/lib/systemd/system', join(root.path, 'usr/lib/systemd/system'), { recursive: true });
  symlinkSync('usr/lib', join(root.path, 'lib'));
  writeFileSync(join(programs, 'dendro'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(units, 'dendro.service'), unit);
  const { status, stderr } = analyze('verify', '--man=no', `--root=${root.path}`, 'dendro.service');
  return stderr === '' && status !== 0 ? `exit code ${status}` : stderr;
}

test('systemd-analyze verify reports nothing', () => {
  expect(verify(text)).toBe('');
});

test('systemd-analyze verify would report a wrong setting', () => {
  expect(verify(text.replace('ProtectSystem=strict', 'ProtectSystem=wrong'))).toContain('wrong');
});

test('systemd-analyze security rates the exposure at 1.5 or less', () => {
  const { status, stdout } = analyze('security', '--offline=true', '--no-pager', '--threshold=15', UNIT);
  process.stdout.write(`${stdout.trim().split('\n').at(-1)}\n`);
  expect(status).toBe(0);
});

test('the service has a user of its own and can write to its state directory only', () => {
  const settings = text.split('\n');
  for (const setting of [
    'User=dendro',
    'StateDirectory=dendro',
    'ProtectSystem=strict',
    'NoNewPrivileges=yes',
  ])
    expect(settings).toContain(setting);
  expect(settings).toContain('Environment=DENDRO_DATA=/var/lib/dendro');
  expect(text).not.toMatch(/^ReadWritePaths=/m);
});
