// The visitor's token. It lives in this tab's session storage and nowhere else; a reload keeps it, a new tab asks again.

const KEY = 'dendro.token';

export function readToken(): string | undefined {
  return sessionStorage.getItem(KEY) ?? undefined;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(KEY, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(KEY);
}

/** A link may carry a token behind `#token=`, which no server sees. It is read once and taken out of the address. */
export function takeTokenFromAddress(): boolean {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get('token');
  if (token === null) return false;
  fragment.delete('token');
  const rest = fragment.toString();
  history.replaceState(null, '', location.pathname + location.search + (rest === '' ? '' : `#${rest}`));
  if (token !== '') keepToken(token);
  return token !== '';
}
