// A button that copies text and says whether it worked.
import { h } from '../dom.ts';

const SAID_FOR_MS = 2000;

export function makeCopyButton(label: string, text: () => string): HTMLElement {
  const words = h('span', { 'aria-live': 'polite' }, label);
  const button = h('button', { type: 'button', class: 'button small' }, words);
  button.addEventListener('click', async () => {
    words.textContent = (await copy(text(), button)) ? 'Copied' : 'Not allowed to copy';
    setTimeout(() => {
      words.textContent = label;
    }, SAID_FOR_MS);
  });
  return button;
}

/** The clipboard's own interface is there on HTTPS and on this machine only; elsewhere the old command serves. */
async function copy(text: string, button: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'for-screen-readers', readonly: true });
    area.value = text;
    button.after(area);
    area.select();
    const worked = document.execCommand('copy');
    area.remove();
    button.focus();
    return worked;
  }
}
