import { expect, test } from 'vitest';
import { formatTable } from '../../src/cli/table.ts';

test('a table aligns texts left, and numbers at their decimal points', () => {
  const rows = [
    ['a', '7', '1.25'],
    ['longer', '1234', '100'],
    ['', '', ''],
  ];
  expect(formatTable(['name', 'count', 'milliseconds'], rows, column => column > 0).split('\n')).toEqual([
    'name    count  milliseconds',
    '------  -----  ------------',
    'a           7          1.25',
    'longer   1234        100',
    '',
    '3 rows',
    '',
  ]);
});
