// Shown while the server cannot be asked yet: it is starting, or out of reach.
import type { Fault } from '../api/fault.ts';
import { h } from '../dom.ts';
import { faultMessage } from '../panel/message.ts';
import { makeLogo } from './logo.ts';

export function makeWaiting(fault: Fault): HTMLElement {
  return h(
    'main',
    { class: 'sign-in' },
    h('div', { class: 'card sign-in-card' }, makeLogo(), faultMessage(fault)),
  );
}
