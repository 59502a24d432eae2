import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LOG_FIELDS, type LogField } from '../../src/domain/log-fields.ts';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { bindParameters } from '../../src/endpoint/parameters.ts';
import { parseSearchExpression, SearchSyntaxError } from '../../src/endpoint/search-expression.ts';
import type { Condition } from '../../src/store/condition.ts';
import { ConditionCompiler } from '../../src/store/condition-sql.ts';
import { LogSql } from '../../src/store/log-sql.ts';
import { BUILT_IN, EXPLORE } from '../support/custom-endpoints.ts';
import { SYNTAX } from '../support/reference-search.ts';
import { SEED } from '../support/seed.ts';

const parse = (text: string) => parseSearchExpression(text, LOG_FIELDS);
const problemOf = (text: string, fields: readonly LogField[] = LOG_FIELDS) => {
  try {
    parseSearchExpression(text, fields);
  } catch (error) {
    if (!(error instanceof SearchSyntaxError)) throw error;
    const { message } = error;
    return { message, position: Number(/ at character (\d+)/.exec(message)?.[1]) };
  }
  return undefined;
};

const word = (contains: string): Condition => ({ contains });
const not = (condition: Condition): Condition => ({ not: condition });
const field = (searchable: LogField, ...matches: string[]): Condition => ({ field: { searchable }, matches });
const path = (...keys: string[]) => ({ path: keys });

describe('a search expression', () => {
  test.each<[string, Condition]>([
    ['', { all: [] }],
    [' \t\n ', { all: [] }],
    ['one two', { all: [word('one'), word('two')] }],
    ['"a phrase" -"not this" -nor', { all: [word('a phrase'), not(word('not this')), not(word('nor'))] }],
    ['"say \\"hi\\"" "C:\\\\temp" "a\\b"', { all: [word('say "hi"'), word('C:\\temp'), word('a\\b')] }],
    ...[
      ...['12:30:01', '[2026-11-14T12:30:01Z]', '10.0.0.1:80', '2001:db8::1', '::1', '::ffff:10.0.0.1'],
      ...['key=value', 'next=https://a', '/a?b=c:d', 'YWJj==', 'Hello!', 'List<String>', "o'hara"],
      ...['/app/src/index.js:10:5', '[ERROR]:'],
    ].map((text): [string, Condition] => [`x ${text}`, { all: [word('x'), word(text)] }]),
    ['a-b --x', { all: [word('a-b'), not(word('-x'))] }],
    ['a=b or and not', { all: [word('a=b'), word('or'), word('and'), word('not')] }],
    ['not found', { all: ['not', 'found'].map(word) }],
    ...['auth0|5f7', 'HEAD~1', '.env:x', 'OR-1234', '错误：连接'].map((text): [string, Condition] => [
      text,
      word(text),
    ]),
    ['status:5XX', field('status', '5', '')],
    ['-STATUS:503', not(field('status', '503'))],
    ['path:/rest/*/items**', field('path', '/rest/', '/items', '')],
    ['path:"/a b*"', field('path', '/a b*')],
    ['🦕'.repeat(128), word('🦕'.repeat(128))],
    [`path:${'a'.repeat(1000)}`, field('path', 'a'.repeat(1000))],
    ['host:a:80', field('host', 'a:80')],
    [
      'status:500 status:503 x',
      { all: [{ any: [field('status', '500'), field('status', '503')] }, word('x')] },
    ],
    ['a OR b', { any: [word('a'), word('b')] }],
    ['a b OR c', { any: [{ all: [word('a'), word('b')] }, word('c')] }],
    ['a (b OR -c)', { all: [word('a'), { any: [word('b'), not(word('c'))] }] }],
    ['-(a b)', not({ all: [word('a'), word('b')] })],
    ['((a)) OR("b")', { any: [word('a'), word('b')] }],
    ['status:>=500', { field: { searchable: 'status' }, operator: '>=', number: '500' }],
    ['execution_time_ms:>1.5', { field: { column: 'execution_time_ms' }, operator: '>', number: '1.5' }],
    [
      'status:500..599',
      {
        all: [
          { field: { searchable: 'status' }, operator: '>=', number: '500' },
          { field: { searchable: 'status' }, operator: '<=', number: '599' },
        ],
      },
    ],
    ...['status:400..5xx', 'status:4XX..599', 'status:4xx..5xx'].map((text): [string, Condition] => [
      text,
      {
        all: [
          { field: { searchable: 'status' }, operator: '>=', number: '400' },
          { field: { searchable: 'status' }, operator: '<=', number: '599' },
        ],
      },
    ]),
    [
      'execution_time_ms:1e3 execution_time_ms:1.50',
      { any: ['1000', '1.5'].map(text => ({ field: { column: 'execution_time_ms' }, matches: [text] })) },
    ],
    [
      '-labels."app.kubernetes.io/name":api*',
      not({ field: path('labels', 'app.kubernetes.io/name'), matches: ['api', ''] }),
    ],
    ['metadata."a \\"b\\" \\\\ [0]".c:>1', { field: path('a "b" \\ [0]', 'c'), operator: '>', number: '1' }],
    ['exists:metadata."@timestamp"', { field: path('@timestamp'), exists: true }],
    ['request.headers.cf_ray:8f3*', { field: path('request', 'headers', 'cf_ray'), matches: ['8f3', ''] }],
    ['metadata.request_id:a', { field: path('request_id'), matches: ['a'] }],
    ['TRACE_ID:a', { field: path('trace_id'), matches: ['a'] }],
    [
      'kind:edge id:1',
      {
        all: [
          { field: { column: 'kind' }, matches: ['edge'] },
          { field: { column: 'id' }, matches: ['1'] },
        ],
      },
    ],
    ['exists:parsed.detail', { field: path('parsed', 'detail'), exists: true }],
    ['-exists:status', not({ field: { searchable: 'status' }, exists: true })],
    ['metadata.v:">5"', { field: path('v'), matches: ['>5'] }],
    ['metadata.v:a..b', { field: path('v'), matches: ['a..b'] }],
  ])('%j is parsed into its condition', (text, condition) => {
    expect(parse(text)).toEqual(condition);
  });

  test.each([
    ['ok "open', 'the quote is not closed at character 4', 4],
    ['🦕 "open', 'the quote is not closed at character 3', 3],
    ['a ""', 'the phrase is empty at character 3', 3],
    ['path:""', 'the value is empty at character 6', 6],
    ['a"b"', 'a quote is inside a word at character 2', 2],
    ['path:a"b"', 'a quote is inside a value at character 7', 7],
    ['"a"b', 'a space must follow the closing quote at character 4', 4],
    ['a - b', 'a word, a phrase, a field or ( must follow the - at character 3', 3],
    ['a -', 'a word, a phrase, a field or ( must follow the - at character 3', 3],
    ['path: x', 'path: has no value at character 6', 6],
    ['x https://a', 'there is no field https at character 3', 3],
    ['TypeError: x', 'there is no field TypeError at character 1', 1],
    ['sttus:500', 'there is no field sttus at character 1; did you mean status', 1],
    ['request_id:a', 'write metadata.request_id', 1],
    ['status:600', 'the value of status is not a status code at character 8', 8],
    ['status:5*', 'the value of status is not a status code at character 8', 8],
    ['status=500', '= cannot follow a field at character 7; write status:500', 7],
    ['status>=500', '>= cannot follow a field at character 7; write status:>=500', 7],
    ['request.method!=GET', '!= cannot follow a field at character 15; write -request.method:GET', 15],
    ['status:>=5xx', 'a number must follow >= at character 10', 10],
    ['status:500..', 'a range needs two numbers at character 8, such as 500..599', 8],
    ['status:599..500', 'must not be larger than the second at character 8', 8],
    ['execution_time_ms:fast', 'the value of execution_time_ms is not a number at character 19', 19],
    ['exists:', 'exists: has no value at character 8', 8],
    ['exists:a:b', 'exists: needs the name of a field at character 8', 8],
    ['a AND b', 'AND is not an operator at character 3', 3],
    ['a && b', '&& is not an operator at character 3', 3],
    ['a || b', '|| is not an operator at character 3; write OR', 3],
    ['NOT a', 'NOT is not an operator at character 1; write -term', 1],
    ['!a', '! is not an operator at character 1; write -term', 1],
    ['time*', '* is a wildcard only in the value of a field at character 5', 5],
    ['a | b', '| is not an operator at character 3; write OR', 3],
    ...[':', ':500', '>=500', '>', '<5', '=500', '!=500', '=='].map((text): [string, string, number] => [
      `status ${text}`,
      `${text.replace('500', '').replace('5', '')} needs a field before it and a value after it at character 8`,
      8,
    ]),
    ...[
      'labels.app/name:api',
      'request.headers[0]:x',
      '@timestamp:x',
      'sttus!:5',
      'nginx/a:1',
      'sttus>=5',
    ].map((text): [string, string, number] => [
      `a ${text}`,
      `there is no field ${text.replace(/(?:!|>=|:)[^:]*$/, '').replace(/!$/, '')} at character 3`,
      3,
    ]),
    ['sttus>=5', 'there is no field sttus at character 1; did you mean status', 1],
    ['--a.b:1', 'there is no field -a.b at character 2', 2],
    ['status!:500', '!: cannot follow a field at character 7; write -status:500', 7],
    ['status!=500', '!= cannot follow a field at character 7; write -status:500', 7],
    ['é.b status>500', '> cannot follow a field at character 11; write status:>500', 11],
    [
      '"status":500',
      'a space must follow the closing quote at character 9; a key in quotes follows a dot',
      9,
    ],
    ['metadata."*":1', 'a quote is inside a word at character 10', 10],
    ['status:5xx..6xx', 'a range needs two numbers at character 8, such as 500..599 or 4xx..5xx', 8],
    ['status:a..b', 'the value of status is not a status code at character 8', 8],
    ['path:[a TO b]', 'a value cannot begin with [ at character 6; write a range', 6],
    ['level::error', 'a value cannot begin with : at character 7', 7],
    ['a “b c”', '“ is not a quote at character 3; write "text"', 3],
    ["path:'a b'", "' is not a quote at character 6", 6],
    ['status:200  or status:500', 'or is not an operator at character 13; write OR', 13],
    ['"a b" And c', 'And is not an operator at character 7: terms without OR', 7],
    ['not  status:500', 'not is not an operator at character 1; write -term', 1],
    ['(a) or -b', 'or is not an operator at character 5', 5],
    ['a OR not b', 'not is not an operator at character 6', 6],
    ['café:x', 'there is no field café at character 1', 1],
    ['a severity!~err', 'there is no field severity at character 3', 3],
    ['-+status:500', '+ is not an operator at character 2', 2],
    ['a -or b', 'or is not an operator at character 4; write OR', 4],
    ['a -OR b', 'OR is not an operator at character 4', 4],
    ['é OR-b', 'a space must follow OR at character 5', 5],
    ['é||b', '|| is not an operator at character 2; write OR', 2],
    ['a&&b', '&& is not an operator at character 2: terms without OR', 2],
    ['a +b', '+ is not an operator at character 3: terms without OR', 3],
    ['a –b', '– is not a minus at character 3; write -term', 3],
    ...['[', '{', '#', ',', '/', '&', '^', '\\', 'é/'].map((start): [string, string, number] => [
      `a ${start}status:500`,
      'a field must follow a space, - or (',
      start.length + 3,
    ]),
    ['request->method:POST', 'a field must follow a space, - or ( at character 10', 10],
    ['$.request.body:POST', 'there is no field $.request.body at character 1', 1],
    ['status≥500', '≥ cannot follow a field at character 7; write status:>=500', 7],
    ['status≠500', '≠ cannot follow a field at character 7; write -status:500', 7],
    ['status：500', '： cannot follow a field at character 7; write status:500', 7],
    ['severity=~err', 'there is no field severity at character 1', 1],
    ['a [500 TO 599]', 'a range needs a field before it at character 3, such as status:500..599', 3],
    ['500..599', 'a range needs a field before it at character 1', 1],
    ['method IN (GET)', 'IN is not an operator at character 8; write method:500..599, method:a*', 8],
    ['status  between 500 and 599', 'between is not an operator at character 9', 9],
    [
      'level:error,fatal',
      'a value of level cannot contain , at character 12; write (level:a OR level:b)',
      12,
    ],
    ['method:GET|POST', 'a value of method cannot contain | at character 11', 11],
    ['method:!=GET', 'a value cannot begin with ! at character 8', 8],
    ['kind:egde', 'there is no log kind egde at character 6', 6],
    ['a.b.c.d.e.f.g.h.i.j.k:1', 'there is no field a.b.c.d.e.f.g.h.i.j.k at character 1', 1],
    ['OR a', 'OR needs a term on both sides at character 1', 1],
    ['a OR', 'OR needs a term on both sides at character 3', 3],
    ['(a OR ) b', 'OR needs a term on both sides at character 4', 4],
    ['a OR OR b', 'OR needs a term on both sides at character 6', 6],
    ['a ()', 'there is nothing after the ( at character 4', 4],
    ['(a', 'the ( is not closed at character 1', 1],
    ['a) b', 'the ) has no matching ( at character 2', 2],
    [')', 'the ) has no matching ( at character 1', 1],
    ['(a)b', 'a space must follow the ) at character 4', 4],
    ['f(x)', 'a parenthesis is inside a word at character 2', 2],
    ['status:(500 OR 503)', 'a value cannot begin with ( at character 8; write (status:a OR status:b)', 8],
    [`${'('.repeat(21)}a`, 'parentheses are nested more than 20 deep at character 21', 21],
    ['path:*a*b*c*d*', 'the value has more than 4 wildcards (*) at character 6', 6],
    [`a ${'é'.repeat(129)}`, 'the word or phrase at character 3 is too long: at most 128 characters', 3],
    [`-"${'a '.repeat(65)}"`, 'the word or phrase at character 1 is too long', 1],
    [`path:*${'a'.repeat(129)}`, 'the value with a wildcard at character 1 is too long', 1],
    ['1 2 3 4 5 6 7 8 9 10 11', 'too many words at character 22', 22],
    [`${'a.b:>1 '.repeat(10)}a.b:>1`, 'too many fields of the metadata at character 71', 71],
    [
      Array.from({ length: 11 }, (_, i) => `a.${i}:1`).join(' '),
      'too many fields of the metadata at character 61',
      61,
    ],
    [
      `${'path:*a*b*c*d '.repeat(4)}PATH:e*`,
      'too many wildcards (*) at character 57: at most 16 are allowed',
      57,
    ],
    [`${'-path:/a* '.repeat(16)}-path:/b*`, 'in all values of -path', 161],
  ])('%j is an error with its position', (text, message, position) => {
    const problem = problemOf(text);
    expect(problem?.message).toContain(message);
    expect(problem?.position).toBe(position);
  });

  test('each field, and its excluded values, can have 16 wildcards', () => {
    const values = ['path:', '-path:', 'host:', '-host:'].map(name => `${name}*a*b*c*d `.repeat(4));
    expect(problemOf(`${values.join('')} path:/plain path:"*"`)).toBeUndefined();
  });

  test('a field that the log kind does not have is an error that lists the fields', () => {
    expect(problemOf('a status:500', ['host', 'level'])?.message).toBe(
      'the selected log kind has no field status at character 3; allowed fields: host, level, id, kind, project, event_message, url, function_id, execution_time_ms, status_code, trace_id. To search for this key of the metadata, write metadata.status. To search for text with a colon, put it in quotes',
    );
  });

  test('each of 10,000 malformed expressions is a 400 of the parameter with a position in the text', () => {
    const catalog = loadCatalog({ builtIn: BUILT_IN, packs: [EXPLORE], custom: undefined }, 'duckdb');
    const definition = catalog.find('logs.search')?.definition;
    if (definition === undefined) throw new Error('there is no logs.search');
    const texts = fc.array(fc.constantFrom(...SYNTAX), { minLength: 1, maxLength: 12 });
    const malformed = new Set<string>();
    for (let seed = SEED; malformed.size < 10_000; seed++)
      for (const parts of fc.sample(texts, { numRuns: 5_000, seed })) {
        const query = parts.join('');
        try {
          bindParameters(definition, new URLSearchParams({ project: 'p', kind: 'all', query }));
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_parameter', param: 'query' });
          const position = Number(/ at character (\d+)/.exec((error as Error).message)?.[1]);
          if (!(position >= 1 && position <= [...query].length + 1))
            throw new Error(`${query}: no position in ${(error as Error).message}`);
          malformed.add(query);
        }
      }
  });

  test('of 20,000 random texts, each is parsed or is an error with a position in the text', () => {
    const text = fc.oneof(
      fc.array(fc.constantFrom(...SYNTAX), { maxLength: 30 }).map(parts => parts.join('')),
      fc.string({ unit: 'binary', maxLength: 40 }).map(value => value.toWellFormed()),
    );
    fc.assert(
      fc.property(text, value => {
        const problem = problemOf(value);
        if (problem !== undefined) {
          expect(problem.position).toBeGreaterThanOrEqual(1);
          expect(problem.position).toBeLessThanOrEqual([...value].length + 1);
          return;
        }
        const compiler = new ConditionCompiler(new LogSql('duckdb', 'all'));
        compiler.compile(parse(value));
        // JavaScript reads the same subset of the syntax as RE2 does, except for the flags at the start.
        for (const { value: pattern } of Object.values(compiler.values))
          if (/^\(\?is?\)/.test(String(pattern)))
            new RegExp(String(pattern).replace(/^\(\?is?\)/, ''), 'isu');
      }),
      { numRuns: 20_000 },
    );
  });
});
