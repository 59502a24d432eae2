// Whether a number survives being read into a double and written out again.

const LARGEST_EXACT = String(Number.MAX_SAFE_INTEGER);

/** Whether the double nearest to the JSON number `token` is written as the same number (`1.50` and `15e-1` are the same). */
export function isExactInDouble(token: string): boolean {
  // Microsecond timestamps are this common case. As text, numbers of the same length compare as numbers do.
  if (/^[1-9]\d{15}$/.test(token) && token <= LARGEST_EXACT) return true;
  const double = Number(token);
  if (!Number.isFinite(double)) return false;
  const written = String(double);
  if (written === token) return true;
  // Whole numbers up to 21 digits are written out in full, so these differ; nanosecond timestamps are this common case.
  if (/^[1-9]\d{0,20}$/.test(token)) return false;
  return normalForm(written) === normalForm(token);
}

// Digits without zeros at either end, and the power of ten they are multiplied by. Plain loops rather than /0+$/, which
// takes quadratic time on a long run of zeros in the middle.
function normalForm(number: string): string {
  const exponentAt = number.search(/[eE]/);
  const mantissa = exponentAt === -1 ? number : number.slice(0, exponentAt);
  const exponent = exponentAt === -1 ? 0 : Number(number.slice(exponentAt + 1));
  const sign = mantissa.startsWith('-') ? '-' : '';
  const point = mantissa.indexOf('.');
  const fractionLength = point === -1 ? 0 : mantissa.length - point - 1;
  const digits = mantissa.slice(sign.length).replace('.', '');
  let first = 0;
  while (digits[first] === '0') first++;
  if (first === digits.length) return '0';
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return `${sign}${digits.slice(first, end)}e${exponent - fractionLength + digits.length - end}`;
}
