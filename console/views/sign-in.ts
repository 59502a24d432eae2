// The pages without a shell: the sign-in form, the choice between two tokens, and the page that is shown while the server starts
// or is unreachable.
import type { ApiError } from '../api/client.ts';
import { createErrorMessage } from '../components/messages.ts';
import { createId, h } from '../dom.ts';
import { createLogo } from './shell.ts';

/** `error` is the API's message about the previous token, if it was rejected. */
export function createSignInPage(
  error: string | undefined,
  onToken: (token: string, isKept: boolean) => void,
): HTMLElement {
  const id = createId('token');
  const input = h('input', {
    id,
    type: 'password',
    class: 'mono',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    autofocus: true,
    'aria-invalid': error === undefined ? undefined : 'true',
    'aria-describedby': `${id}-hint`,
  });
  const keep = h('input', { type: 'checkbox' });
  const form = h(
    'form',
    { class: 'card sign-in-card' },
    createLogo(),
    h('h1', {}, 'Sign in'),
    error === undefined ? undefined : h('p', { class: 'note error', role: 'alert' }, error),
    h('label', { class: 'field-label', for: id }, 'API token'),
    input,
    h('label', { class: 'sign-in-keep' }, keep, ' Keep me signed in on this browser'),
    h('button', { type: 'submit', class: 'button primary' }, 'Sign in'),
    h(
      'p',
      { class: 'field-hint', id: `${id}-hint` },
      'The token needs the scope query. It is sent as a header, to this server only. It stays in this browser tab. If you keep signed in, this browser stores it until you sign out: everyone who uses this browser can then read these logs.',
    ),
    h(
      'details',
      { class: 'sign-in-help' },
      h('summary', {}, 'Where do I get a token?'),
      h('p', {}, 'On the server, this command prints a new token once:'),
      h('code', { class: 'command' }, 'dendro token create --name me --scope query'),
      h(
        'p',
        {},
        'The first start of a server without tokens creates one too. It prints the token to the terminal, or the name of the file that contains it. If you do not operate this server, ask the person who does.',
      ),
    ),
  );
  form.addEventListener('submit', event => {
    event.preventDefault();
    const token = input.value.trim();
    if (token !== '') onToken(token, keep.checked);
  });
  return h('main', { class: 'sign-in' }, form);
}

export function createTokenChoicePage(on: {
  readonly onKeep: () => void;
  readonly onReplace: () => void;
}): HTMLElement {
  return h(
    'main',
    { class: 'sign-in' },
    h(
      'div',
      { class: 'card sign-in-card' },
      createLogo(),
      h('h1', {}, 'Use the token of this link?'),
      h(
        'p',
        {},
        'You are signed in with another token. With the token of the link, you see the data that its creator has chosen. Use it only if you trust the link.',
      ),
      h('button', { type: 'button', class: 'button primary', on: { click: on.onKeep } }, 'Keep my token'),
      h(
        'button',
        { type: 'button', class: 'button', on: { click: on.onReplace } },
        'Use the token of the link',
      ),
    ),
  );
}

export function createWaitingPage(error: ApiError): HTMLElement {
  return h(
    'main',
    { class: 'sign-in' },
    h('div', { class: 'card sign-in-card' }, createLogo(), createErrorMessage(error, true)),
  );
}
