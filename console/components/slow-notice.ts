// A notice that a request takes long, with a button that cancels it. It appears after two seconds.
import { h } from '../dom.ts';
import { createActionButton } from './messages.ts';

const DELAY_MS = 2000;

export class SlowNotice {
  readonly element: HTMLElement;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(onCancel: () => void) {
    this.element = h(
      'div',
      { class: 'slow', role: 'status', hidden: true },
      h('p', {}, 'This query takes a while.'),
      createActionButton({ label: 'Cancel', run: onCancel }),
    );
  }

  start(): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.element.hidden = false;
    }, DELAY_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.element.hidden = true;
  }
}
