// Parses and formats JSON without rounding numbers that a double cannot represent, so that the page shows and copies the
// digits that the API sent. Browsers that do not give access to the source text of a number show such numbers rounded.

/** A number that a double cannot represent, as its digits. */
export class ExactNumber {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

interface JsonWithRawText {
  rawJSON?(text: string): unknown;
}

/** A double represents every decimal number of up to 15 significant digits. */
const SAFE_DIGITS = 15;

export function parseExactJson(text: string): unknown {
  // Most responses contain only numbers that a double can represent, and a reviver makes parsing several times slower.
  if (!/\d{16}|\d[eE][+-]?\d|\.\d{14}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, function revive(this: unknown, _key: string, value: unknown, ...rest: unknown[]) {
    const source = (rest[0] as { source?: string } | undefined)?.source;
    if (typeof value !== 'number' || source === undefined || isSafe(value, source)) return value;
    return new ExactNumber(source);
  });
}

/** The double has the value of its source text. */
function isSafe(value: number, source: string): boolean {
  if (String(value) === source) return true;
  const digits = source.replace(/[eE].*$|\D/g, '');
  const isOutOfRange = !Number.isFinite(value) || (value === 0 && /[1-9]/.test(digits));
  return !isOutOfRange && digits.length <= SAFE_DIGITS;
}

export function formatJson(value: unknown, indent = 2): string {
  const { rawJSON } = JSON as JsonWithRawText;
  return JSON.stringify(
    value,
    (_key, item) => (item instanceof ExactNumber ? (rawJSON?.(item.digits) ?? Number(item.digits)) : item),
    indent,
  );
}
