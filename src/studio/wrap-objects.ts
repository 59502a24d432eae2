// Converts JSON to the form in which BigQuery returns records.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]]/g;

/** Wraps every object in an array, except the items of arrays. Everything else stays as it is, numbers and white space included. */
export function wrapObjects(json: string): string {
  if (!json.startsWith('{') && !json.startsWith('[')) return json;
  const open: string[] = [];
  return json.replace(TOKEN, token => {
    if (token === '[' || token === '{') {
      const isItem = open.at(-1) === '[';
      open.push(token === '{' && !isItem ? 'wrapped' : token);
      return token === '{' && !isItem ? '[{' : token;
    }
    if (token !== ']' && token !== '}') return token;
    return open.pop() === 'wrapped' ? '}]' : token;
  });
}
