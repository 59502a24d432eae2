import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LOG_FIELDS } from '../../src/domain/log-fields.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { parseSearchExpression } from '../../src/endpoint/search-expression.ts';
import { type RequiredText, requiredTextOf } from '../../src/store/required-text.ts';
import {
  expressionOf,
  formatExpression,
  matchesExpression,
  recordDraft,
} from '../support/reference-search.ts';

const requirementOf = (expression: string) => requiredTextOf(parseSearchExpression(expression, LOG_FIELDS));

/** As the text index does: a record with a disguised letter, digit or space may contain any text. */
function satisfies({ eventMessage, metadata }: LogRecord, required: RequiredText): boolean {
  if ('all' in required)
    return required.all.every(each => satisfies({ eventMessage, metadata } as LogRecord, each));
  if ('any' in required)
    return required.any.some(each => satisfies({ eventMessage, metadata } as LogRecord, each));
  const texts = [eventMessage, metadata];
  return texts.some(
    text => text.toLowerCase().includes(required.text) || /[\u212a\u017f]|\\u00[2-7]/i.test(text),
  );
}

test('every record that matches an expression contains its required text', () => {
  let matches = 0;
  fc.assert(
    fc.property(recordDraft, expressionOf('storage'), (draft, expression) => {
      const record = draft('storage', { id: 'r1', at: 0n, project: 'p' });
      if (!matchesExpression('storage', record, expression)) return;
      matches++;
      expect(satisfies(record, requirementOf(formatExpression(expression)))).toBe(true);
    }),
    { numRuns: 5_000 },
  );
  expect(matches).toBeGreaterThan(500);
});

test.each<[string, RequiredText]>([
  [
    'Zebra "two words" -never',
    { all: [{ all: [{ text: 'zebra' }] }, { all: [{ text: 'two words' }] }, { all: [] }] },
  ],
  ['foo/bar OR ab', { any: [{ all: [{ text: 'foo' }, { text: 'bar' }] }, { all: [] }] }],
  ['request.headers.cf_ray:8f3a-*', { all: ['request', 'headers', 'ray', '8f3a'].map(text => ({ text })) }],
  ['metadata.size:500', { all: [{ text: 'size' }] }],
  ['status:500', { all: [] }],
])('%s requires its words, and the keys and texts of paths', (expression, required) => {
  expect(requirementOf(expression)).toEqual(required);
});
