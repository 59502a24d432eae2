import { describe, expect, test } from 'vitest';
import { IngestSummary } from '../../src/cli/ingest-summary.ts';
import { escapeForTerminal, escapeLinesForTerminal, formatTable } from '../../src/cli/terminal.ts';

/** A terminal sequence with ESC, the same with a C1 character, a BEL, and a text that is shown backwards. */
const UNSAFE = 'a\u001b[2Jb\u009b2Jc\u0007d\u202egnp.exe\u2069\u007f\u2028';
const ESCAPED = 'a\\u001b[2Jb\\u009b2Jc\\u0007d\\u202egnp.exe\\u2069\\u007f\\u2028';

describe('text for a terminal', () => {
  test('control, C1 and bidi characters are escaped; other characters stay', () => {
    expect(escapeForTerminal(`${UNSAFE} é🌲日本`)).toBe(`${ESCAPED} é🌲日本`);
    expect(escapeForTerminal('one\r\ntwo\tthree')).toBe('one\\r\\ntwo\\tthree');
  });

  test('a text of several lines keeps its line ends; a carriage return alone is escaped', () => {
    expect(escapeLinesForTerminal(`${UNSAFE}\r\nnext\n\tlast\rover`)).toBe(
      `${ESCAPED}\r\nnext\n\tlast\\rover`,
    );
  });

  test('escaped JSON is the same value', () => {
    const json = JSON.stringify({ text: UNSAFE });
    expect(escapeLinesForTerminal(json)).not.toBe(json);
    expect(JSON.parse(escapeLinesForTerminal(json))).toEqual({ text: UNSAFE });
  });

  test('a table escapes its cells and column names', () => {
    const table = formatTable(['name\u001b'], [[UNSAFE]]);
    expect(table).toContain('name\\u001b');
    expect(table).toContain(ESCAPED);
  });

  test('the summary of dendro ingest escapes the file name and the reason', () => {
    const summary = new IngestSummary();
    summary.reject({ code: 'invalid_timestamp', message: UNSAFE } as never);
    const text = summary.describe(`file${UNSAFE}`);
    expect(text.split('\n')).toHaveLength(3);
    expect(text).toContain(`file${ESCAPED}`);
    expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
  });
});

test('a table aligns texts left and numbers right', () => {
  const rows = [
    ['a', '7', '1.25'],
    ['longer', '1234', '100'],
    ['', '', ''],
  ];
  expect(formatTable(['name', 'count', 'milliseconds'], rows, column => column > 0).split('\n')).toEqual([
    'name    count  milliseconds',
    '------  -----  ------------',
    'a           7          1.25',
    'longer   1234           100',
    '',
    '3 rows',
    '',
  ]);
});
