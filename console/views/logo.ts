// The name with its tree rings.

import { h } from '../dom.ts';
import iconUrl from '../icon.svg';

export function makeLogo(): HTMLElement {
  return h('span', { class: 'logo' }, h('img', { src: iconUrl, alt: '', width: 24, height: 24 }), 'Dendro');
}
