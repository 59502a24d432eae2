// Asks for a token, and says where it goes.
import { h, newId } from '../dom.ts';
import { makeLogo } from './logo.ts';

/** `refusal` is what the API said of the last token, if there was one. */
export function makeSignIn(refusal: string | undefined, onToken: (token: string) => void): HTMLElement {
  const id = newId('token');
  const input = h('input', {
    id,
    type: 'password',
    class: 'mono',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    autofocus: true,
    'aria-invalid': refusal === undefined ? undefined : 'true',
    'aria-describedby': `${id}-hint`,
  });
  const form = h(
    'form',
    { class: 'card sign-in-card' },
    makeLogo(),
    h('h1', {}, 'Open the console'),
    refusal === undefined ? undefined : h('p', { class: 'note fault', role: 'alert' }, refusal),
    h('label', { class: 'field-label', for: id }, 'API token'),
    input,
    h('button', { type: 'submit', class: 'button primary' }, 'Continue'),
    h(
      'p',
      { class: 'field-hint', id: `${id}-hint` },
      'Needs the scope query. It stays in this browser tab and is sent to this server only, as a header.',
    ),
  );
  form.addEventListener('submit', event => {
    event.preventDefault();
    const token = input.value.trim();
    if (token !== '') onToken(token);
  });
  return h('main', { class: 'sign-in' }, form);
}
