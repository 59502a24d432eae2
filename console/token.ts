// The user's API token. It is stored in the session storage of this tab: after a reload it is still there, and a new tab has to sign
// in. If the user wants to stay signed in, it is stored in the local storage of the browser instead, until sign-out.

const KEY = 'dendro.token';

export function readToken(): string | undefined {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? undefined;
}

/** `isKept`: also for other tabs and after the browser was closed. */
export function saveToken(token: string, isKept = false): void {
  (isKept ? localStorage : sessionStorage).setItem(KEY, token);
}

export function removeToken(): void {
  for (const storage of [sessionStorage, localStorage]) storage.removeItem(KEY);
}

/**
 * Removes the token of a link that ends in `#token=…` from the URL, and returns it. Browsers do not send the fragment to the
 * server.
 */
export function takeTokenFromUrl(): string | undefined {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get('token');
  if (token === null) return undefined;
  fragment.delete('token');
  const rest = fragment.toString();
  history.replaceState(null, '', location.pathname + location.search + (rest === '' ? '' : `#${rest}`));
  return token === '' ? undefined : token;
}
