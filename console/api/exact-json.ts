// JSON with numbers that a double cannot hold kept as they were written, so that what is shown and copied is what was
// sent. Browsers that do not hand out a number's source text show such numbers rounded, as they always do.

/** A number that is kept as its digits. */
export class ExactNumber {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

interface ModernJson {
  rawJSON?(text: string): unknown;
}

/** So many digits every double keeps. */
const SAFE_DIGITS = 15;

export function parseExactJson(text: string): unknown {
  // Most answers hold no such number, and a reviver makes parsing several times slower.
  if (!/\d{16}|\d[eE][+-]?\d|\.\d{14}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, function revive(this: unknown, _key: string, value: unknown, ...rest: unknown[]) {
    const source = (rest[0] as { source?: string } | undefined)?.source;
    if (typeof value !== 'number' || source === undefined || isSafe(value, source)) return value;
    return new ExactNumber(source);
  });
}

function isSafe(value: number, source: string): boolean {
  if (String(value) === source) return true;
  const digits = source.replace(/[eE].*$|\D/g, '');
  const isOutOfRange = !Number.isFinite(value) || (value === 0 && /[1-9]/.test(digits));
  return !isOutOfRange && digits.length <= SAFE_DIGITS;
}

export function formatJson(value: unknown): string {
  const { rawJSON } = JSON as ModernJson;
  return JSON.stringify(
    value,
    (_key, part) => (part instanceof ExactNumber ? (rawJSON?.(part.digits) ?? Number(part.digits)) : part),
    2,
  );
}
