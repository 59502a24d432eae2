// The workflow of the hosted CI: it covers both architectures, and its commands exist. The workflow itself does not run here.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readYaml } from './read-yaml.ts';

const ROOT = join(import.meta.dirname, '../..');
const [{ jobs }] = readYaml('../.github/workflows/ci.yml');

test('lint, tests and the image build run, the latter two on x64 and arm64', () => {
  expect(Object.keys(jobs)).toEqual(['lint', 'test', 'image']);
  for (const { strategy } of [jobs.test, jobs.image])
    expect(strategy.matrix.runner).toEqual(['ubuntu-24.04', 'ubuntu-24.04-arm']);
});

test('every npm script, program and file in its commands exists', () => {
  const text = readFileSync(join(ROOT, '.github/workflows/ci.yml'), 'utf8');
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script = '']) => script);
  expect(named).toEqual(['check']);
  expect(named.filter(script => !(script in scripts))).toEqual([]);
  for (const file of ['.ci/run', 'deploy/Dockerfile', 'docs/install.md']) {
    expect(text).toContain(file);
    expect(existsSync(join(ROOT, file))).toBe(true);
  }
});
