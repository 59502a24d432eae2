// How old the answer is and how far the data reach, with the two ways to get newer ones. It has its line from the start,
// so nothing moves when its words come.
import { type Answer, ageSeconds } from '../api/answer.ts';
import { h, replaceChildren } from '../dom.ts';
import { formatAgo, formatFull, formatUtc } from '../times.ts';

export interface FreshnessBar {
  readonly element: HTMLElement;
  readonly refreshesByItself: boolean;
  showAnswer(answer: Answer): void;
  /** A refresh failed, and what is shown below is older than it could be. */
  showProblem(message: string): void;
  clear(): void;
  close(): void;
}

export function makeFreshnessBar(onRefresh: () => void, onAutoChange: () => void): FreshnessBar {
  const words = h('p', { class: 'freshness-words' });
  const auto = h('input', { type: 'checkbox', role: 'switch', checked: true });
  auto.addEventListener('change', onAutoChange);
  const button = h(
    'button',
    { type: 'button', class: 'button', title: 'Ask the store again now' },
    'Refresh',
  );
  button.addEventListener('click', onRefresh);
  const problem = h('p', { class: 'freshness-problem', role: 'status' });
  let shown: Answer | undefined;
  const tell = () => {
    if (shown !== undefined) replaceChildren(words, ...describe(shown));
  };
  const ticking = setInterval(tell, 1000);
  return {
    element: h(
      'div',
      { class: 'freshness' },
      words,
      problem,
      h(
        'label',
        { class: 'switch', title: 'Pauses while this tab is hidden' },
        auto,
        h('span', {}, 'Auto-refresh'),
      ),
      button,
    ),
    get refreshesByItself() {
      return auto.checked;
    },
    showAnswer(answer) {
      shown = answer;
      problem.textContent = '';
      tell();
    },
    showProblem(message) {
      problem.textContent = `Not refreshed: ${message}`;
    },
    clear() {
      shown = undefined;
      problem.textContent = '';
      replaceChildren(words);
    },
    close: () => clearInterval(ticking),
  };
}

function describe(answer: Answer): Node[] {
  const age = h('span', {}, `Answer ${formatAgo(ageSeconds(answer))} old`);
  age.title = `Asked ${formatFull(answer.askedAt)} · ${formatUtc(answer.askedAt)}`;
  const { dataThrough } = answer;
  if (dataThrough === undefined) return [age, h('span', {}, 'no data yet')];
  const behind = formatAgo(Math.max(0, (answer.askedAt - dataThrough) / 1000));
  const through = h(
    'span',
    { title: `Newest record of this log, ${behind} before the answer · ${formatUtc(dataThrough)}` },
    'data through ',
    h('time', { datetime: new Date(dataThrough).toISOString() }, formatFull(dataThrough)),
  );
  return [age, through];
}
