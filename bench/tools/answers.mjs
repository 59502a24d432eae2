// Whether two systems gave the same answer, whatever form each gives it in.

export function sameAnswer(endpoint, one, other) {
  return (
    one.length === other.length &&
    JSON.stringify(one.map(row => plain(endpoint, row))) ===
      JSON.stringify(other.map(row => plain(endpoint, row)))
  );
}

function plain(endpoint, row) {
  if (endpoint === 'logs.all') {
    const [id, timestamp, message, metadata] = row;
    return [
      id,
      Number(timestamp),
      message,
      sorted(typeof metadata === 'string' ? JSON.parse(metadata) : metadata),
    ];
  }
  return row.map(toNumber);
}

/** Averages differ in the last digits, by the order in which they are added. A time may come as a text. */
function toNumber(value) {
  const number = /^\d{4}-\d\d-\d\dT/.test(value)
    ? Date.parse(/Z$/.test(value) ? value : `${value}Z`) * 1000
    : Number(value);
  return Number(number.toPrecision(Number.isInteger(number) ? 17 : 9));
}

/** PostgreSQL's jsonb forgets the order of keys. */
function sorted(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, sorted(value[key])]),
  );
}
