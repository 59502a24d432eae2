// What a search tells the store about text, so that the store can skip records that cannot match.
import type { Condition } from './condition.ts';

/** Text that a record must contain to match a condition. A record that does not satisfy it cannot match; one that does, may. */
export type RequiredText =
  /** If it is empty, there is no requirement. */
  | { readonly all: readonly RequiredText[] }
  | { readonly any: readonly RequiredText[] }
  /**
   * A run of ASCII letters, digits and spaces that the message or the JSON text of the metadata contains, in upper or lower case. The
   * text is in lower case.
   */
  | { readonly text: string };

const NOTHING: RequiredText = { all: [] };
/** The index knows texts of three characters. */
const MIN_LENGTH = 3;

export function requiredTextOf(condition: Condition): RequiredText {
  if ('all' in condition) return { all: condition.all.map(requiredTextOf) };
  if ('any' in condition) return { any: condition.any.map(requiredTextOf) };
  if ('not' in condition) return NOTHING;
  if ('contains' in condition) return requireTexts([condition.contains]);
  const { field } = condition;
  if (!('path' in field)) return NOTHING; // columns are fast, and their values need not be in the metadata
  // A number can be written in several ways.
  const isNumber = !('matches' in condition) || condition.matches.every(text => /^[-+.0-9e]*$/i.test(text));
  return requireTexts([...field.path, ...(isNumber ? [] : condition.matches)]);
}

/** The parts of a text that are written in only one way, apart from letter case. They are in lower case. */
export function runsOf(text: string): string[] {
  const runs = text.match(/[a-z0-9 ]+/gi) ?? [];
  return runs.filter(run => run.length >= MIN_LENGTH).map(run => run.toLowerCase());
}

/** What a record must contain that contains these texts. */
export function requireTexts(texts: readonly string[]): RequiredText {
  return { all: texts.flatMap(runsOf).map(text => ({ text })) };
}
