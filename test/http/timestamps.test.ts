import { beforeAll, describe, expect, test } from 'vitest';
import { micros } from '../support/app.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const AT = '2026-11-14T12:30:00.123456Z';

describe('the parameter timestamps', () => {
  const app = useApp({ cacheBytes: 1_000_000 });
  beforeAll(async () => {
    await app.append('edge', [edgeRecord({ id: 'one', at: AT })]);
    await app.append('function_edge', [functionEdgeRecord({ at: AT })]);
  });

  test.each([
    ['logs.all', {}, Number(micros(AT)), AT],
    [
      'functions.invocation-stats',
      { interval: '1hr' },
      Number(micros('2026-11-14T12:30:00Z')),
      '2026-11-14T12:30:00Z',
    ],
    ['usage.api-counts', { interval: 'minutely' }, '2026-11-14T12:30:00Z', '2026-11-14T12:30:00Z'],
  ])('iso returns the timestamps of %s as ISO 8601 strings', async (name, parameters, plain, iso) => {
    const timestampOf = async (timestamps: Record<string, string>) => {
      const { rows } = await app.query(name, { project: 'alpha', ...parameters, ...timestamps });
      return rows.map(row => row['timestamp']);
    };
    expect(await timestampOf({})).toEqual([plain]);
    expect(await timestampOf({ timestamps: '' })).toEqual([plain]);
    expect(await timestampOf({ timestamps: 'iso' })).toEqual([iso]);
  });

  test('both forms come from one cache entry and have different ETags', async () => {
    const parameters = { project: 'cached', interval: '1day' };
    await app.append('function_edge', [functionEdgeRecord({ at: AT, project: 'cached' })]);
    const plain = await app.query('functions.invocation-stats', parameters);
    const iso = await app.query('functions.invocation-stats', { ...parameters, timestamps: 'iso' });
    expect(plain.headers.get('cache-status')).toBe('dendro; fwd=miss');
    expect(iso.headers.get('cache-status')).toMatch(/^dendro; hit/);
    expect(iso.headers.get('etag')).not.toBe(plain.headers.get('etag'));
    const again = await app.query('functions.invocation-stats', parameters);
    expect(again.text).toBe(plain.text);
  });

  test('the name may be percent-encoded, and another value is an invalid parameter', async () => {
    const call = '/api/endpoints/query/logs.all?project=alpha';
    const { rows } = await app.get(`${call}&%74%69%6d%65%73%74%61%6d%70%73=iso`);
    expect(rows[0]?.['timestamp']).toBe(AT);
    for (const query of ['timestamps=ISO', 'timestamps=unix', 'timestamps=iso&timestamps=iso']) {
      const { status, error } = await app.get(`${call}&${query}`);
      expect([status, error.code, error.param]).toEqual([400, 'invalid_parameter', 'timestamps']);
      expect(error.message).toContain('iso');
    }
  });
});
