// Makes text from outside (log records, file names, messages of a server) safe to print: control characters and characters that
// change the direction of text could otherwise control the terminal or hide what is printed.

/** C0 and C1 control characters, DEL, line separators, and characters that change the direction of text. */
const UNSAFE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** The same without tabs and line ends. */
const UNSAFE_IN_LINES = /(?![\t\n]|\r\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Escapes a text that has to stay on one line. */
export function escapeForTerminal(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Escapes a text of several lines. JSON text keeps its value: the escapes, such as \u009b, mean the same in a JSON string. */
export function escapeLinesForTerminal(text: string): string {
  return text.replace(UNSAFE_IN_LINES, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return SHORT_ESCAPES[character] ?? `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}
