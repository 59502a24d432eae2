import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { parseExactJson } from '../../src/logs/exact-json.ts';
import { createIdSequence, hasIdentity, isRejection, toRecord } from '../../src/logs/record.ts';
import { accept, CONTEXT, NOW, reject } from './validate-record.ts';

describe('toRecord', () => {
  test('id, timestamp, project, message and metadata are stored as they were sent', () => {
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
    '%s is rejected because it is not an object',
    json => {
      expect(reject(json).code).toBe('not_an_object');
    },
  );

  test('toRecord does not change its argument', () => {
    const value = parseExactJson('{"project":"p","message":"m","other":1,"metadata":[{"a":"\\ud800"}]}');
    const before = JSON.stringify(value);
    toRecord(value, 'edge', CONTEXT);
    expect(JSON.stringify(value)).toBe(before);
  });
});

describe('the message of a record', () => {
  test.each([
    ['"event_message":"a"', 'a', '{}'],
    ['"message":"b"', 'b', '{}'],
    ['"event_message":null,"message":"b"', 'b', '{}'],
    ['"event_message":"a","message":null', 'a', '{}'],
    ['"event_message":"a","message":"b"', 'a', '{"message":"b"}'],
    ['"event_message":"","message":"b"', '', '{"message":"b"}'],
    ['"event_message":{"a":1},"message":"b"', 'b', '{"event_message":{"a":1}}'],
    [
      '"event_message":12345678901234567890,"message":7',
      '',
      '{"event_message":12345678901234567890,"message":7}',
    ],
    ['"metadata":{"a":null}', '', '{"a":null}'],
    ['"level":"info"', '', '{"level":"info"}'],
    // Without both, other names are read: the first one with a text that is not empty.
    ['"msg":"c"', 'c', '{}'],
    ['"log":"c"', 'c', '{}'],
    ['"body":"c"', 'c', '{}'],
    ['"body":"e","log":"d","msg":"c"', 'c', '{"body":"e","log":"d"}'],
    ['"msg":{"a":1},"log":"","body":"e"', 'e', '{"msg":{"a":1},"log":""}'],
    ['"msg":7', '', '{"msg":7}'],
    ['"event_message":null,"message":null,"msg":"c"', 'c', '{}'],
    ['"msg":"c","metadata":{"msg":"kept"}', 'c', '{"msg":"kept"}'],
    ['"message":"b","msg":"c"', 'b', '{"msg":"c"}'],
    ['"event_message":"","msg":"c"', '', '{"msg":"c"}'],
    ['"message":{"a":1},"msg":"c"', '', '{"message":{"a":1},"msg":"c"}'],
  ])('of %s is %j, and the metadata is %s', (fields, eventMessage, metadata) => {
    expect(accept(`{"project":"p",${fields}}`)).toMatchObject({ eventMessage, metadata });
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
});

describe('the metadata of a record', () => {
  test.each([
    ['"metadata":[{"a":1}]', '{"a":1}'],
    // Other top-level fields follow those of the metadata, and never overwrite them.
    [
      '"level":"info","metadata":{"a":1},"n":null,"o":{"x":[1]},"message":"m"',
      '{"a":1,"level":"info","n":null,"o":{"x":[1]}}',
    ],
    ['"level":"top","b":2,"metadata":{"level":null,"a":1}', '{"level":null,"a":1,"b":2}'],
    ['"metadata":{},"n":1e400', '{"n":1e400}'],
    ...[
      '{"ns":1794648600123456789,"id":1234567890123456789012345,"big":1e400}', // no double can represent these
    ].map(json => [`"metadata":${json}`, json]),
    ...['"text"', '""', '0', 'false', '[]', '[1]', '[{},{}]', '[[{}]]', '12345678901234567890'].map(json => [
      `"metadata":${json}`,
      `{"metadata":${json}}`,
    ]),
  ])('of %s is %s', (fields, metadata) => {
    expect(accept(`{"project":"p",${fields}}`).metadata).toBe(metadata);
  });

  test('__proto__, constructor and hasOwnProperty are ordinary fields', () => {
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
});

describe('the project of a record', () => {
  test('the project is the first non-empty string of project, metadata.project, .project_ref, .tenantId, .external_id', () => {
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
    '%s is not a project and is kept under metadata',
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

  test('the project is found in metadata inside an array and in top-level fields that became metadata', () => {
    expect(accept({ metadata: [{ project_ref: 'r' }] }).project).toBe('r');
    expect(accept({ tenantId: 't', message: 'm' }).project).toBe('t');
  });

  test('a project that the token is not allowed to use is rejected', () => {
    const context = { ...CONTEXT, projects: ['p', 'q'] };
    expect(accept({ project: 'q', message: 'm' }, 'postgres', context).project).toBe('q');
    expect(accept({ metadata: { project: 'p' } }, 'postgres', context).project).toBe('p');
    expect(reject({ project: 'P', message: 'm' }, context).code).toBe('project_not_allowed');
    expect(reject({ project: 'p', message: 'm' }, { ...CONTEXT, projects: [] }).code).toBe(
      'project_not_allowed',
    );
    expect(reject({ message: 'm' }, context).code).toBe('no_project');
  });
});

describe('a name that no query could ask for', () => {
  const LONGEST = ['a'.repeat(1024), '🦕'.repeat(1024)];

  test('a project of 1,024 characters is accepted, and a longer one or one with NUL is rejected', () => {
    for (const project of LONGEST) {
      expect(accept({ project, message: 'm' }).project).toBe(project);
      const tooLong = reject({ metadata: { project_ref: `${project}a` } });
      expect(tooLong.code).toBe('invalid_project');
      expect(tooLong.message).toBe('The project is too long: at most 1024 characters are allowed.');
    }
    const withNul = reject({ project: 'p\u0000', message: 'm' });
    expect(withNul.code).toBe('invalid_project');
    expect(withNul.message).toBe('The project contains a NUL character.');
  });

  test.each(['function_edge', 'function'] as const)('a function id in %s has the same limits', kind => {
    const record = (id: string) => `{"project":"p","metadata":{"function_id":${id}}}`;
    for (const id of [...LONGEST, '']) expect(accept(record(JSON.stringify(id)), kind).project).toBe('p');
    expect(accept(record('{}'), kind).project).toBe('p');
    for (const id of [`"${LONGEST[1]}a"`, '"f\\u0000"', '1'.repeat(1025)])
      expect(reject(record(id), CONTEXT, kind).code).toBe('invalid_function_id');
  });

  test('other kinds have no function id, so metadata.function_id can have any length', () => {
    expect(accept({ project: 'p', metadata: { function_id: 'a'.repeat(1025) } }, 'edge').project).toBe('p');
  });
});

describe('the id of a record', () => {
  test.each([
    ['"a b"', 'a b'],
    ['" "', ' '],
    ['7', '7'],
    ['0', '0'],
    ['false', 'false'],
    ['1.5', '1.5'],
    ['1234567890123456789012345', '1234567890123456789012345'],
  ])('the id %s is stored as the string %j', (json, id) => {
    expect(accept(`{"project":"p","message":"m","id":${json}}`)).toMatchObject({ id, metadata: '{}' });
  });

  test.each(['', ',"id":null', ',"id":""'])(
    'without an id, a UUIDv7 of the time of arrival is created (%j)',
    field => {
      const { id, metadata } = accept(`{"project":"p","message":"m","timestamp":${NOW - 9_000_000}${field}}`);
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toBe(Math.floor(NOW / 1000));
      expect(metadata).toBe('{}');
    },
  );

  test.each(['{"a":1}', '[]'])('%s is not an id: it is kept under metadata, and an id is created', json => {
    const record = accept(`{"project":"p","message":"m","id":${json}}`);
    expect(record.id).toMatch(/-7/);
    expect(record.metadata).toBe(`{"id":${json}}`);
  });
});

describe('hasIdentity', () => {
  test.each([
    ['{"id":"a"}', true],
    ['{"id":""}', false],
    ['{"timestamp":1794648600}', false],
    ['{"timestamp":1794648600123}', true],
    ['{"timestamp":"2026-11-14T09:30:00Z"}', false],
    ['{"timestamp":"2026-11-14T09:30:00,5Z"}', true],
    ['{"timestamp":"20261114T093000.5Z"}', true],
    ['{"time":1794648600123}', true],
    ['{"ts":1794648600}', false],
    ['{"time":"soon","@timestamp":"2026-11-14T09:30:00.1Z"}', true],
    ['{"timestamp":1794648600,"time":1794648600123}', false],
  ])('of %s is %s', (json, expected) => {
    expect(hasIdentity(parseExactJson(json))).toBe(expected);
  });
});

describe('created ids', () => {
  const idsOfBatch = (count: number) => Array.from({ length: count }, createIdSequence(NOW));

  test('the ids of a batch increase, also beyond 4,096 ids', () => {
    const ids = idsOfBatch(20_000);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('the ids of 1,000 batches of the same microsecond are different', () => {
    const ids = Array.from({ length: 1000 }, () => idsOfBatch(10)).flat();
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('invalid Unicode in a record', () => {
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

  test('lone surrogates become U+FFFD in extracted fields', () => {
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

  test('surrogate pairs, U+0000 and text that looks like an escape are unchanged', () => {
    const metadata = {
      pair: '😀',
      nul: 'a\u0000b',
      text: '\\ud800',
      more: '\\\\ud800 \\\\\\ud800',
      '\\ud800': 1,
    };
    const record = accept({ project: 'p', id: 'i\u0000', message: '😀\u0000', metadata });
    expect(record).toMatchObject({
      id: 'i\u0000',
      eventMessage: '😀\u0000',
      metadata: JSON.stringify(metadata),
    });
  });

  test('if two keys become equal, the last one wins, as for a duplicate key', () => {
    expect(accept('{"project":"p","metadata":{"\\ud800":1,"\\ud801":2}}').metadata).toBe('{"\ufffd":2}');
  });
});

describe('limits of a record', () => {
  const sized = (metadataBytes: number) => ({
    id: 'id',
    project: 'p',
    event_message: 'message',
    metadata: { a: 'x'.repeat(metadataBytes - '{"a":""}'.length) },
  });
  const MIB = 1024 * 1024;

  test('a record of exactly 1 MiB is accepted and one byte more is rejected', () => {
    const otherBytes = 'id'.length + 'p'.length + 'message'.length;
    expect(accept(sized(MIB - otherBytes)).metadata).toHaveLength(MIB - otherBytes);
    expect(reject(sized(MIB - otherBytes + 1)).code).toBe('too_large');
  });

  test('the limit of 1 MiB counts UTF-8 bytes of every field', () => {
    const half = 'é'.repeat(MIB / 2);
    expect(reject({ project: 'p', message: half }).code).toBe('too_large');
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

  test('a million levels of nesting do not overflow the stack, in any field', () => {
    const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    for (const field of ['metadata', 'id', 'project', 'timestamp', 'message', 'other']) {
      expect(reject(`{"project":"p","message":"m","${field}":${deep}}`).code).toBe('too_deep');
    }
  });

  test('a record with 10,000 items is not too deep', () => {
    expect(accept({ project: 'p', list: Array.from({ length: 10_000 }, () => ({ a: [] })) }).project).toBe(
      'p',
    );
  });
});

describe('toRecord with random JSON', () => {
  const words = (text: string) => fc.constantFrom(...text.split(' '));
  const field = fc.oneof(
    words('event_message message metadata timestamp id project request response function_id'),
    words('execution_time_ms url path host status_code batch __proto__'),
  );
  const leaf = fc.oneof(
    fc.string({ unit: 'binary' }).map(text => JSON.stringify(text)),
    words(`"\\ud800" 1e400 12345678901234567890 -0 0.1 null true "" ${NOW} "2026-11-14"`),
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

  test('the result is a record of valid JSON and valid Unicode, or a rejection, and it never throws', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(...LOG_KINDS), fc.boolean(), (text, kind, named) => {
        const sent =
          named && text.startsWith('{')
            ? `{"tenantId":"t","level":1${text === '{}' ? '' : ','}${text.slice(1)}`
            : text;
        const result = toRecord(parseExactJson(sent), kind, CONTEXT);
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
