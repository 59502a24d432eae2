// From a question to what is seen: asks, shows the answer or why there is none, and keeps it fresh.
import { type Answer, ageSeconds } from '../api/answer.ts';
import { ask } from '../api/client.ts';
import { Fault } from '../api/fault.ts';
import { h, replaceChildren } from '../dom.ts';
import { RefreshTimer } from '../refresh-timer.ts';
import type { ViewContext } from '../views/view.ts';
import { makeFreshnessBar } from './freshness-bar.ts';
import { askForProject, type EmptyWords, emptyMessage, faultMessage, loadingMessage } from './message.ts';

export interface Question {
  readonly endpoint: string;
  /** Made anew for each call: a range that moves with now is another one every time. */
  readonly parameters: () => Readonly<Record<string, string>>;
  /** An answer older than a tenth of its window is asked for anew; undefined: any age will do. */
  readonly windowSeconds: number | undefined;
  readonly refreshSeconds: number;
  readonly empty: EmptyWords;
}

export interface PanelParts {
  readonly content: HTMLElement;
  draw(answer: Answer): void;
  /** The parameter that the API found at fault, or undefined once all is well. */
  markFault(param: string | undefined): void;
  readonly context: Pick<ViewContext, 'onUnauthorized' | 'markProject'>;
}

const STALE_SHARE = 0.1;
const FAULT_RETRY_SECONDS = 10;

export class Panel {
  readonly element: HTMLElement;
  readonly #parts: PanelParts;
  readonly #bar = makeFreshnessBar(
    () => void this.#load({ fresh: true }),
    () => this.#planNext(),
  );
  readonly #message = h('div', { class: 'panel-message' });
  readonly #timer = new RefreshTimer(() => void this.#load({}));
  #question: Question | undefined;
  #running: AbortController | undefined;
  #isShowing = false;

  constructor(parts: PanelParts) {
    this.#parts = parts;
    parts.content.hidden = true;
    this.element = h('section', { class: 'panel' }, this.#bar.element, this.#message, parts.content);
  }

  /** What is shown stays, dimmed, until the new answer is there. */
  ask(question: Question): void {
    this.#question = question;
    if (!this.#isShowing) this.#say(loadingMessage());
    void this.#load({ isNew: true });
  }

  askForProject(): void {
    this.#question = undefined;
    this.#stop();
    this.#bar.clear();
    this.#say(askForProject());
  }

  close(): void {
    this.#stop();
    this.#timer.close();
    this.#bar.close();
  }

  async #load({ fresh = false, isNew = false }): Promise<void> {
    const question = this.#question;
    if (question === undefined) return;
    this.#stop();
    const running = new AbortController();
    let isFirst = isNew;
    this.#running = running;
    this.element.setAttribute('aria-busy', 'true');
    try {
      const { signal } = running;
      let answer = await ask(question.endpoint, question.parameters(), { fresh, signal });
      this.#show(question, answer);
      isFirst = false;
      if (isStale(question, answer)) {
        answer = await ask(question.endpoint, question.parameters(), { fresh: true, signal });
        this.#show(question, answer);
      }
      this.#planNext();
    } catch (error) {
      if (running.signal.aborted) return;
      if (!(error instanceof Fault)) throw error;
      this.#fail(error, isFirst);
    } finally {
      if (this.#running === running) this.element.removeAttribute('aria-busy');
    }
  }

  #show(question: Question, answer: Answer): void {
    this.#mark(undefined);
    this.#bar.showAnswer(answer);
    if (answer.rows.length === 0) {
      this.#say(emptyMessage(question.empty, answer));
      return;
    }
    this.#message.hidden = true;
    this.#parts.content.hidden = false;
    this.#isShowing = true;
    this.#parts.draw(answer);
  }

  #fail(fault: Fault, isFirst: boolean): void {
    if (fault.code === 'unauthorized') {
      this.#parts.context.onUnauthorized(fault);
      return;
    }
    this.#mark(fault.param);
    if (this.#isShowing && !isFirst) this.#bar.showProblem(fault.message);
    else {
      this.#bar.clear();
      this.#say(faultMessage(fault));
    }
    const mayPass = fault.retryAfterSeconds !== undefined || !isFirst;
    this.#timer.plan(mayPass ? Math.max(fault.retryAfterSeconds ?? FAULT_RETRY_SECONDS, 1) : undefined);
  }

  #mark(param: string | undefined): void {
    this.#parts.markFault(param);
    this.#parts.context.markProject(param === 'project');
  }

  #say(message: HTMLElement): void {
    replaceChildren(this.#message, message);
    this.#message.hidden = false;
    this.#parts.content.hidden = true;
    this.#isShowing = false;
  }

  #planNext(): void {
    this.#timer.plan(this.#bar.refreshesByItself ? this.#question?.refreshSeconds : undefined);
  }

  #stop(): void {
    this.#running?.abort();
    this.#timer.plan(undefined);
    this.element.removeAttribute('aria-busy');
  }
}

function isStale({ windowSeconds }: Question, answer: Answer): boolean {
  return windowSeconds !== undefined && ageSeconds(answer) > windowSeconds * STALE_SHARE;
}
