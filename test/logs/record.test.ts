import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { parseExactJson } from '../../src/logs/exact-json.ts';
import { isRejection, toRecord } from '../../src/logs/record.ts';
import { accept, DOOR, metadataOf, NOW, reject } from './door.ts';

describe('a record', () => {
  test('keeps id, timestamp, project, message and metadata as they were sent', () => {
    const record = accept({
      id: 'a1',
      timestamp: NOW - 5,
      project: 'p',
      event_message: 'hello',
      metadata: { host: 'db', list: [1, { a: null }] },
    });
    expect(record).toStrictEqual({
      id: 'a1',
      timestampMicros: NOW - 5,
      project: 'p',
      eventMessage: 'hello',
      metadata: '{"host":"db","list":[1,{"a":null}]}',
      extracted: {},
    });
  });

  test.each(['null', '1', '"text"', 'true', '[]', '[{"project":"p","message":"m"}]', '12345678901234567890'])(
    '%s is rejected: not an object',
    json => {
      expect(reject(json).code).toBe('not_an_object');
    },
  );

  test('the value that was sent is not changed', () => {
    const value = parseExactJson('{"project":"p","message":"m","other":1,"metadata":[{"a":"\\ud800"}]}');
    const before = JSON.stringify(value);
    toRecord(value, 'edge', DOOR);
    expect(JSON.stringify(value)).toBe(before);
  });
});

describe('the message', () => {
  test('is event_message, or message without one', () => {
    expect(accept({ project: 'p', event_message: 'a' }).eventMessage).toBe('a');
    expect(accept({ project: 'p', message: 'b' }).eventMessage).toBe('b');
    expect(accept({ project: 'p', event_message: null, message: 'b' })).toMatchObject({
      eventMessage: 'b',
      metadata: '{}',
    });
  });

  test('a message beside event_message is kept under metadata', () => {
    expect(accept({ project: 'p', event_message: 'a', message: 'b' })).toMatchObject({
      eventMessage: 'a',
      metadata: '{"message":"b"}',
    });
    expect(accept({ project: 'p', event_message: '', message: 'b' })).toMatchObject({
      eventMessage: '',
      metadata: '{"message":"b"}',
    });
  });

  test('what is no text is kept under metadata, and null is nothing', () => {
    expect(accept({ project: 'p', event_message: { a: 1 }, message: 'b' })).toMatchObject({
      eventMessage: 'b',
      metadata: '{"event_message":{"a":1}}',
    });
    expect(accept('{"project":"p","event_message":12345678901234567890,"message":7}')).toMatchObject({
      eventMessage: '',
      metadata: '{"event_message":12345678901234567890,"message":7}',
    });
    expect(accept({ project: 'p', event_message: 'a', message: null }).metadata).toBe('{}');
  });

  test('a record without message and metadata is rejected', () => {
    for (const json of [
      { project: 'p' },
      { project: 'p', event_message: '' },
      { project: 'p', message: '', metadata: {} },
      { project: 'p', event_message: null, metadata: null },
      { project: 'p', metadata: [{}], id: 'a', timestamp: NOW },
    ]) {
      expect(reject(json).code).toBe('empty_record');
    }
  });

  test('either of the two is enough', () => {
    expect(accept({ project: 'p', message: 'm' }).metadata).toBe('{}');
    expect(accept({ project: 'p', metadata: { a: null } }).eventMessage).toBe('');
    expect(accept({ project: 'p', level: 'info' }).metadata).toBe('{"level":"info"}');
  });
});

describe('metadata', () => {
  test('an array of one object is that object', () => {
    expect(accept({ project: 'p', metadata: [{ a: 1 }] }).metadata).toBe('{"a":1}');
  });

  test.each(['"text"', '""', '0', 'false', '[]', '[1]', '[{},{}]', '[[{}]]', '12345678901234567890'])(
    '%s is no object and is kept under metadata.metadata',
    json => {
      expect(accept(`{"project":"p","metadata":${json}}`).metadata).toBe(`{"metadata":${json}}`);
    },
  );

  test('other top-level fields are kept after those of the metadata', () => {
    const record = accept({
      level: 'info',
      project: 'p',
      metadata: { a: 1 },
      n: null,
      o: { x: [1] },
      message: 'm',
    });
    expect(record.metadata).toBe('{"a":1,"level":"info","n":null,"o":{"x":[1]}}');
  });

  test('another top-level field never overwrites what is in the metadata', () => {
    const record = accept({ level: 'top', b: 2, project: 'p', metadata: { level: null, a: 1 } });
    expect(metadataOf(record)).toStrictEqual({ level: null, a: 1, b: 2 });
  });

  test('__proto__, constructor and hasOwnProperty are data like any other', () => {
    const record = accept(
      '{"project":"p","__proto__":{"project":"q"},"constructor":1,"hasOwnProperty":2,"metadata":{"a":{"__proto__":3}}}',
    );
    expect(record.metadata).toBe(
      '{"a":{"__proto__":3},"__proto__":{"project":"q"},"constructor":1,"hasOwnProperty":2}',
    );
    expect(accept('{"project":"p","metadata":{"__proto__":1},"__proto__":2,"b":3}').metadata).toBe(
      '{"__proto__":1,"b":3}',
    );
    expect(reject('{"message":"m","__proto__":{"project":"q"}}').code).toBe('no_project');
    expect(({} as { project?: string }).project).toBeUndefined();
  });

  test('numbers stay as they were written where a double could not hold them', () => {
    const metadata = '{"ns":1794648600123456789,"id":1234567890123456789012345,"big":1e400}';
    expect(accept(`{"project":"p","metadata":${metadata}}`).metadata).toBe(metadata);
    expect(accept(`{"project":"p","metadata":{},"n":1e400}`).metadata).toBe('{"n":1e400}');
  });
});

describe('the project', () => {
  test('is the first non-empty text of project, metadata.project, .project_ref, .tenantId, .external_id', () => {
    const metadata: Record<string, string> = {
      external_id: 'e',
      tenantId: 't',
      project_ref: 'r',
      project: 'm',
    };
    expect(accept({ project: 'p', metadata }).project).toBe('p');
    for (const project of ['m', 'r', 't', 'e']) {
      expect(accept({ metadata }).project).toBe(project);
      const key = Object.keys(metadata).find(name => metadata[name] === project) ?? '';
      metadata[key] = '';
    }
    expect(reject({ metadata }).code).toBe('no_project');
  });

  test.each(['null', '""', '7', '["p"]', '12345678901234567890'])(
    '%s is no project; it is kept as data',
    json => {
      const record = accept(`{"project":${json},"metadata":{"tenantId":"t"}}`);
      expect(record.project).toBe('t');
      expect(record.metadata).toBe(`{"tenantId":"t","project":${json}}`);
      expect(accept(`{"project":${json},"metadata":{"project":"m"}}`)).toMatchObject({
        project: 'm',
        metadata: '{"project":"m"}',
      });
      expect(reject(`{"message":"m","project":${json}}`).code).toBe('no_project');
    },
  );

  test('it is found in metadata that came in an array, and in top-level fields that became metadata', () => {
    expect(accept({ metadata: [{ project_ref: 'r' }] }).project).toBe('r');
    expect(accept({ tenantId: 't', message: 'm' }).project).toBe('t');
  });

  test('a project outside the pin of the token is rejected', () => {
    const door = { ...DOOR, projects: ['p', 'q'] };
    expect(accept({ project: 'q', message: 'm' }, 'postgres', door).project).toBe('q');
    expect(accept({ metadata: { project: 'p' } }, 'postgres', door).project).toBe('p');
    expect(reject({ project: 'P', message: 'm' }, door).code).toBe('project_not_allowed');
    expect(reject({ project: 'p', message: 'm' }, { ...DOOR, projects: [] }).code).toBe(
      'project_not_allowed',
    );
    expect(reject({ message: 'm' }, door).code).toBe('no_project');
  });
});

describe('the id', () => {
  test.each([
    ['"a b"', 'a b'],
    ['" "', ' '],
    ['7', '7'],
    ['0', '0'],
    ['false', 'false'],
    ['1.5', '1.5'],
    ['1234567890123456789012345', '1234567890123456789012345'],
  ])('%s is kept as the text %j', (json, id) => {
    expect(accept(`{"project":"p","message":"m","id":${json}}`)).toMatchObject({ id, metadata: '{}' });
  });

  test.each(['', ',"id":null', ',"id":""'])(
    'without one a UUIDv7 of the time of arrival is made (%j)',
    field => {
      const { id, metadata } = accept(`{"project":"p","message":"m","timestamp":${NOW - 9_000_000}${field}}`);
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toBe(Math.floor(NOW / 1000));
      expect(metadata).toBe('{}');
    },
  );

  test.each(['{"a":1}', '[]'])('%s is no id: it is kept under metadata and an id is made', json => {
    const record = accept(`{"project":"p","message":"m","id":${json}}`);
    expect(record.id).toMatch(/-7/);
    expect(record.metadata).toBe(`{"id":${json}}`);
  });
});

describe('text that is not valid Unicode', () => {
  test('lone surrogates become U+FFFD in message, id, project, and in keys and values of the metadata', () => {
    const record = accept(
      '{"project":"p\\ud800","id":"\\udc00i","event_message":"a\\ud83dz","metadata":{"k\\udfff":["v\\ud800"],"n":1e400},"o\\ud800":1}',
    );
    expect(record).toMatchObject({
      project: 'p\ufffd',
      id: '\ufffdi',
      eventMessage: 'a\ufffdz',
      metadata: '{"k\ufffd":["v\ufffd"],"n":1e400,"o\ufffd":1}',
    });
  });

  test('they become U+FFFD in extracted fields', () => {
    expect(
      accept('{"project":"p","metadata":{"request":{"url":"https://h\\ud800/a"}}}', 'edge').extracted,
    ).toStrictEqual({
      url: 'https://h\ufffd/a',
      path: '/a',
    });
    expect(
      accept('{"project":"p","metadata":{"function_id":"\\ud800"}}', 'function_edge').extracted,
    ).toMatchObject({
      function_id: '\ufffd',
    });
  });

  test('pairs, U+0000 and text that only looks like an escape stay', () => {
    const metadata = {
      pair: '😀',
      nul: 'a\u0000b',
      text: '\\ud800',
      more: '\\\\ud800 \\\\\\ud800',
      '\\ud800': 1,
    };
    const record = accept({ project: 'p\u0000', message: '😀\u0000', metadata });
    expect(record).toMatchObject({
      project: 'p\u0000',
      eventMessage: '😀\u0000',
      metadata: JSON.stringify(metadata),
    });
  });

  test('of two keys that become one the last counts, as of a key that is sent twice', () => {
    expect(accept('{"project":"p","metadata":{"\\ud800":1,"\\ud801":2}}').metadata).toBe('{"\ufffd":2}');
  });
});

describe('limits', () => {
  const sized = (metadataBytes: number) => ({
    id: 'id',
    project: 'p',
    event_message: 'message',
    metadata: { a: 'x'.repeat(metadataBytes - '{"a":""}'.length) },
  });
  const MIB = 1024 * 1024;

  test('a record of exactly 1 MiB is accepted and one byte more is rejected', () => {
    const rest = 'id'.length + 'p'.length + 'message'.length;
    expect(accept(sized(MIB - rest)).metadata).toHaveLength(MIB - rest);
    expect(reject(sized(MIB - rest + 1)).code).toBe('too_large');
  });

  test('the limit counts bytes of UTF-8, in every field', () => {
    const half = 'é'.repeat(MIB / 2);
    expect(reject({ project: 'p', message: half }).code).toBe('too_large');
    expect(reject({ project: half, message: 'm' }).code).toBe('too_large');
    expect(reject({ project: 'p', message: 'm', id: half }).code).toBe('too_large');
    expect(reject({ project: 'p', other: half }).code).toBe('too_large');
    expect(accept({ project: 'p', id: 'i', message: 'é'.repeat(MIB / 2 - 2) }).metadata).toBe('{}');
  });

  test('64 levels of nesting are accepted and 65 rejected, in objects and in arrays', () => {
    const objects = (levels: number) =>
      `{"project":"p","metadata":${'{"a":'.repeat(levels - 1)}1${'}'.repeat(levels - 1)}}`;
    const arrays = (levels: number) =>
      `{"project":"p","other":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    for (const nested of [objects, arrays]) {
      expect(accept(nested(64)).project).toBe('p');
      expect(reject(nested(65)).code).toBe('too_deep');
    }
  });

  test('a million levels overflow nothing, in any field', () => {
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    for (const field of ['metadata', 'id', 'project', 'timestamp', 'message', 'other']) {
      expect(reject(`{"project":"p","message":"m","${field}":${deep}}`).code).toBe('too_deep');
    }
  });

  test('a wide record is not a deep one', () => {
    expect(accept({ project: 'p', list: Array.from({ length: 10_000 }, () => ({ a: [] })) }).project).toBe(
      'p',
    );
  });
});

describe('whatever is sent', () => {
  const field = fc.constantFrom(
    'event_message',
    'message',
    'metadata',
    'timestamp',
    'id',
    'project',
    'request',
    'response',
    'function_id',
    'execution_time_ms',
    'url',
    'path',
    'host',
    'status_code',
    'batch',
    '__proto__',
  );
  const leaf = fc.oneof(
    fc.string({ unit: 'binary' }).map(text => JSON.stringify(text)),
    fc.constantFrom(
      '"\\ud800"',
      '1e400',
      '12345678901234567890',
      '-0',
      '0.1',
      'null',
      'true',
      '""',
      `${NOW}`,
      '"2026-11-14"',
    ),
  );
  const { json } = fc.letrec<{ json: string }>(tie => ({
    json: fc.oneof(
      { maxDepth: 5 },
      leaf,
      fc.array(tie('json'), { maxLength: 3 }).map(items => `[${items.join(',')}]`),
      fc
        .array(fc.tuple(fc.oneof(field, fc.string()), tie('json')), { maxLength: 6 })
        .map(fields => `{${fields.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`),
    ),
  }));

  test('becomes a record of valid JSON and valid Unicode or a rejection, and nothing throws', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(...LOG_KINDS), fc.boolean(), (text, kind, named) => {
        const sent =
          named && text.startsWith('{')
            ? `{"tenantId":"t","level":1${text === '{}' ? '' : ','}${text.slice(1)}`
            : text;
        const result = toRecord(parseExactJson(sent), kind, DOOR);
        if (isRejection(result)) {
          expect(result.message).toMatch(/^[A-Z].*\.$/);
          expect(result.message.isWellFormed()).toBe(true);
          return;
        }
        const { extracted, timestampMicros, ...texts } = result;
        expect(Number.isSafeInteger(timestampMicros)).toBe(true);
        for (const value of [...Object.values(texts), ...Object.values(extracted)]) {
          if (typeof value !== 'string') continue;
          expect(value.isWellFormed()).toBe(true);
          expect(value).not.toContain('`exact:');
        }
        expect(result.metadata).toMatch(/^\{/);
        expect(result.metadata).not.toMatch(/(?<!\\)(?:\\\\)*\\ud[89a-f]/);
        JSON.parse(result.metadata);
      }),
      { numRuns: 5000 },
    );
  });
});
