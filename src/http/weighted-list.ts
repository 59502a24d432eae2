// Lists such as `text/csv, application/json;q=0.5`, as Accept and Accept-Encoding hold them.

/** Each name, in lower case, with its weight from 0 to 1; parameters other than q are left out. */
export function parseWeighted(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map(part => part.trim());
    if (name !== '' && !weights.has(name)) weights.set(name, weightOf(parameters));
  }
  return weights;
}

function weightOf(parameters: readonly string[]): number {
  const text = parameters.find(parameter => parameter.startsWith('q='))?.slice(2);
  const weight = text === undefined ? 1 : Number(text);
  return weight >= 0 && weight <= 1 ? weight : 0;
}
