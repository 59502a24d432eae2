// A request of the page as a curl command. The token is a variable of the shell, so that the command can be shared.

export function toCurl(endpoint: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(`api/endpoints/query/${encodeURIComponent(endpoint)}`, document.baseURI);
  const present = Object.entries(parameters).filter(([, value]) => value !== '');
  return [
    `curl --get ${quote(`${url.origin}${url.pathname}`)}`,
    '--header "X-API-KEY: $DENDRO_TOKEN"',
    ...present.map(([name, value]) => `--data-urlencode ${quote(`${name}=${value}`)}`),
  ].join(' \\\n  ');
}

/** Nothing within single quotes has a special meaning in a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
