// Replaces DuckDB's regexp_matches by a macro of the same name, which keeps it from rewriting some regular expressions. Calls in
// Dendro's own SQL and in that of operators pass here.

/**
 * DuckDB replaces an expression whose value it knows by simpler functions. With the flag s, which lets a dot match all characters, it
 * uses LIKE. For several `.*`, LIKE takes exponential time and cannot be interrupted. An anchor or an empty group in the middle makes
 * it search for another text. It replaces no expression that has a capturing group, so an empty one is put in front of these. All
 * others stay fast: contains() takes a fourth of the time of a regular expression.
 */
const REWRITTEN_WRONGLY = String.raw`([^[]|\\\[)\^|\$(.|\n)|\\[Az]|\(\?[imU-]*(s|:\)|:\(\?|:\\Q)`;

export const REGEXP_MACRO = `create macro regexp_matches(string, regex) as system.main.regexp_matches(
    string, case when system.main.regexp_matches(regex, '${REWRITTEN_WRONGLY}') then '()' || regex else regex end),
  (string, regex, options) as system.main.regexp_matches(
    string, case when contains(options, 'l') then regex else '()' || regex end, options)`;
