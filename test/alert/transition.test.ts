// The state machine of an alert: which notifications follow from a sequence of evaluations.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AlertState, dropNotifications, type Problem } from '../../src/alert/state.ts';
import { applyFinding, type Finding, type Rule, resolveAll } from '../../src/alert/transition.ts';

const MINUTE = 60_000;
const NOW = '2026-11-14T12:00:00Z';

class Machine {
  readonly state: AlertState = {
    ...{
      version: 1,
      name: 'a',
      severity: 'warning',
      kind: 'edge',
      parameters: {},
      last_evaluated: null,
      failures: 0,
      silence: null,
    },
    ...{ instances: {}, history: [], outbox: [] },
  };
  readonly rule: Rule;

  constructor(rule: Partial<Rule> = {}) {
    this.rule = { every: MINUTE, for: 0, repeat: undefined, resolve_after: 2, notify: ['ops'], ...rule };
  }

  /** Evaluates, and returns what each new notification says. */
  evaluate(finding: Finding, now = NOW, elapsedMs = MINUTE): string[] {
    applyFinding(this.state, this.rule, finding, { elapsedMs, now, from: NOW });
    return this.take();
  }

  rows(...names: string[]): string[] {
    return this.evaluate(rows(...names));
  }

  take(): string[] {
    return this.state.outbox
      .splice(0)
      .map(
        ({ receiver, items }) =>
          `${receiver}: ${items.map(each => `${each.state} ${each.summary}`).join(', ')}`,
      );
  }
}

function rows(...names: string[]): Extract<Finding, { problems: unknown }> {
  const problems = names.map((name): [string, Problem] => [
    JSON.stringify({ name }),
    { cause: 'row', key: { name }, summary: name, row: { name } },
  ]);
  return { problems: new Map(problems), isComplete: true };
}

const clipped = (...names: string[]): Finding => ({ ...rows(...names), isComplete: false });
const failed: Finding = { error: 'broken' };

describe('an instance', () => {
  test('fires at once without `for`, and resolves after two evaluations without its row', () => {
    const machine = new Machine();
    expect(machine.rows('x')).toEqual(['ops: firing x']);
    expect(machine.rows('x')).toEqual([]);
    expect(machine.rows()).toEqual([]);
    expect(machine.rows()).toEqual(['ops: resolved x']);
    expect(machine.rows()).toEqual([]);
    expect(machine.state.history).toMatchObject([{ key: { name: 'x' }, started_at: NOW, ended_at: NOW }]);
  });

  test('fires only when its row has persisted for the time of `for`', () => {
    const machine = new Machine({ for: 3 * MINUTE });
    expect([machine.rows('x'), machine.rows('x'), machine.rows('x')].flat()).toEqual([]);
    expect(machine.rows('x')).toEqual(['ops: firing x']);
  });

  test('fires and reminds on time if evaluations come a little early, but never at its first row', () => {
    const machine = new Machine({ for: 2 * MINUTE, repeat: 2 * MINUTE });
    const sent = [1, 2, 3, 4, 5].map(() => machine.evaluate(rows('x'), NOW, MINUTE - 7).length);
    expect(sent).toEqual([0, 0, 1, 0, 1]);
    const short = new Machine({ for: 10_000 });
    expect([short.rows('x').length, short.rows('x').length]).toEqual([0, 1]);
  });

  test('starts to wait again if its row is gone before it fires, and nobody is notified', () => {
    const machine = new Machine({ for: 2 * MINUTE });
    const sent = ['x', 'x', undefined, 'x', 'x', undefined, undefined].flatMap(name =>
      name === undefined ? machine.rows() : machine.rows(name),
    );
    expect(sent).toEqual([]);
    expect(machine.state.history).toEqual([]);
  });

  test('reminds after the time of `repeat`, and never without it', () => {
    const [reminding, quiet] = [new Machine({ repeat: 2 * MINUTE }), new Machine()];
    const sent = (machine: Machine) => [1, 2, 3, 4, 5].map(() => machine.rows('x').length);
    expect(sent(reminding)).toEqual([1, 0, 1, 0, 1]);
    expect(sent(quiet)).toEqual([1, 0, 0, 0, 0]);
  });

  test('sends no reminder to a receiver that has not accepted the earlier notifications', () => {
    const machine = new Machine({ repeat: 2 * MINUTE });
    for (const _ of [1, 2, 3, 4, 5])
      applyFinding(machine.state, machine.rule, rows('x'), { elapsedMs: MINUTE, now: NOW, from: NOW });
    expect(machine.take()).toEqual(['ops: firing x']);
    expect(machine.rows('x')).toEqual(['ops: firing x']);
    expect(machine.rows('x')).toEqual([]);
  });

  test('a receiver that is added later is told about it too', () => {
    const machine = new Machine();
    machine.rows('x');
    const finding = rows('x');
    applyFinding(
      machine.state,
      { every: MINUTE, for: 0, repeat: undefined, resolve_after: 2, notify: ['ops', 'team'] },
      finding,
      { elapsedMs: MINUTE, now: NOW, from: NOW },
    );
    expect(machine.take()).toEqual(['team: firing x']);
  });
});

describe('one evaluation', () => {
  test('notifies each receiver once, however many instances fire and resolve', () => {
    const machine = new Machine({ notify: ['ops', 'team'], resolve_after: 1 });
    const names = Array.from({ length: 1000 }, (_, index) => `i${index}`);
    machine.evaluate(rows(...names));
    const sent = machine.rows('new');
    expect(sent).toHaveLength(2);
    expect(sent[0]).toMatch(/^ops: resolved i0, .*resolved i999, firing new$/);
  });

  test('ignores rows beyond 1,000 instances until others resolve, but no failure', () => {
    const machine = new Machine({ resolve_after: 1 });
    const names = Array.from({ length: 1200 }, (_, index) => `i${index}`);
    machine.rows(...names);
    expect(Object.keys(machine.state.instances)).toHaveLength(1000);
    expect(machine.rows(...names)).toEqual([]);
    for (const _ of [1, 2]) machine.evaluate(failed);
    expect(machine.evaluate(failed)).toEqual(['ops: error broken']);
    machine.rows(...names.slice(0, 999), 'new');
    expect(machine.rows(...names.slice(0, 998), 'new', 'newer')[0]).toBe('ops: resolved i998, firing newer');
  });

  test('does not resolve an instance if its result was clipped', () => {
    const machine = new Machine({ resolve_after: 1 });
    machine.rows('x');
    expect([clipped('y'), clipped('y'), clipped('y')].flatMap(finding => machine.evaluate(finding))).toEqual([
      'ops: firing y',
    ]);
    expect(machine.rows('y')).toEqual(['ops: resolved x']);
  });

  test('that fails changes no instance; the third one in a row notifies once about the error', () => {
    const machine = new Machine({ resolve_after: 1 });
    machine.rows('x');
    expect([failed, failed].flatMap(finding => machine.evaluate(finding))).toEqual([]);
    expect(machine.evaluate(failed)).toEqual(['ops: error broken']);
    expect(machine.evaluate(failed)).toEqual([]);
    expect(machine.rows('x')).toEqual(['ops: resolved broken']);
  });

  test('that succeeds between failures starts to count again', () => {
    const machine = new Machine();
    const findings = [failed, failed, rows(), failed, failed, rows()];
    expect(findings.flatMap(finding => machine.evaluate(finding))).toEqual([]);
  });
});

test('a notification that was dropped is sent again when nothing waits for its receiver, and the end in any case', () => {
  const machine = new Machine({ resolve_after: 1, notify: ['ops', 'team'] });
  const evaluate = (finding: Finding) =>
    applyFinding(machine.state, machine.rule, finding, { elapsedMs: MINUTE, now: NOW, from: NOW });
  evaluate(rows('x'));
  evaluate(rows('x', 'y'));
  dropNotifications(machine.state, ({ receiver }) => receiver === 'team');
  dropNotifications(machine.state, ({ items }) => items[0]?.summary === 'x');
  evaluate(rows('x', 'y'));
  expect(machine.take()).toEqual(['ops: firing y', 'team: firing x, firing y']);
  expect(machine.rows('x', 'y')).toEqual(['ops: firing x']);
  expect(machine.rows('x', 'y')).toEqual([]);
  evaluate(rows('x', 'y', 'z'));
  dropNotifications(machine.state, ({ receiver }) => receiver === 'team');
  machine.take();
  expect(machine.rows('x', 'y')).toEqual(['ops: resolved z', 'team: resolved z']);
});

describe('a silence', () => {
  const silence = (machine: Machine, ms: number, until = '2026-11-14T14:00:00Z') => {
    machine.state.silence = { until, left_ms: ms };
  };

  test('holds back firing notifications and reminders, and what still fires is sent at its end', () => {
    const machine = new Machine({ repeat: MINUTE });
    machine.rows('old');
    silence(machine, 3 * MINUTE);
    expect([machine.rows('old', 'x'), machine.rows('old', 'x', 'short')].flat()).toEqual([]);
    expect(machine.rows('old', 'x')).toEqual(['ops: firing old, firing x']);
  });

  test('lets a receiver know that an instance resolved which it was told about, and only then', () => {
    const machine = new Machine({ resolve_after: 1 });
    machine.rows('old');
    silence(machine, 10 * MINUTE);
    machine.rows('old', 'hidden');
    expect(machine.rows()).toEqual(['ops: resolved old']);
  });

  test('ends after its time, even if the clock was set back, and at its end, even if the clock was set forward', () => {
    const [back, forward] = [new Machine(), new Machine()];
    silence(back, 2 * MINUTE);
    silence(forward, 100 * MINUTE);
    expect(back.evaluate(rows('x'), '2026-11-13T00:00:00Z')).toEqual([]);
    expect(back.evaluate(rows('x'), '2026-11-13T00:00:00Z')).toEqual(['ops: firing x']);
    expect(forward.evaluate(rows('x'), '2026-11-15T00:00:00Z')).toEqual(['ops: firing x']);
  });
});

test('an alert that was removed resolves with this reason', () => {
  const machine = new Machine({ for: MINUTE });
  machine.rows('x');
  machine.rows('x');
  machine.rows('x', 'pending');
  resolveAll(machine.state, 'the alert was removed', { elapsedMs: 0, now: NOW, from: NOW });
  expect(machine.state.outbox.at(-1)?.items).toMatchObject([
    { state: 'resolved', reason: 'the alert was removed' },
  ]);
  expect(machine.state.instances).toEqual({});
});

test('the end of an instance is never before its start, even if the clock was set back', () => {
  const machine = new Machine({ resolve_after: 1 });
  machine.rows('x');
  machine.evaluate(rows(), '2026-11-14T10:00:00Z');
  expect(machine.state.history).toMatchObject([{ started_at: NOW, ended_at: NOW }]);
});

test('the history has the last 1,000 instances of 7 days', () => {
  const machine = new Machine({ resolve_after: 1 });
  machine.rows(...Array.from({ length: 1000 }, (_, index) => `i${index}`));
  machine.rows(...Array.from({ length: 500 }, (_, index) => `j${index}`));
  machine.rows();
  expect(machine.state.history).toHaveLength(1000);
  machine.evaluate(rows('x'), '2026-11-21T13:00:00Z');
  machine.evaluate(rows(), '2026-11-21T13:01:00Z');
  expect(machine.state.history).toMatchObject([{ key: { name: 'x' } }]);
  machine.evaluate(rows(), '2026-11-28T14:00:00Z');
  expect(machine.state.history).toEqual([]);
});

// A value around its threshold: whatever the sequence of rows, gaps shorter than `resolve_after` and rows shorter than `for` are no
// change, and the notifications of an instance alternate.
test('firing and resolved notifications of an instance alternate, whatever the evaluations return', () => {
  const evaluation = fc.constantFrom<Finding>(rows('x'), rows(), clipped(), clipped('x'), failed);
  const settings = fc.record({
    for: fc.integer({ min: 0, max: 4 }),
    resolve_after: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(
      fc.array(evaluation, { maxLength: 60 }),
      settings,
      (findings, { for: minutes, resolve_after }) => {
        const machine = new Machine({ for: minutes * MINUTE, resolve_after });
        const states: string[] = [];
        let [present, absent] = [0, 0];
        for (const finding of findings) {
          if (!('error' in finding)) {
            const hasRow = finding.problems.size > 0;
            present = hasRow ? present + 1 : finding.isComplete ? 0 : present;
            absent = hasRow ? 0 : finding.isComplete ? absent + 1 : absent;
          }
          for (const text of machine
            .evaluate(finding)
            .flatMap(each => each.replace('ops: ', '').split(', '))) {
            if (!text.endsWith('x')) continue;
            states.push(text);
            if (text === 'firing x') expect(present).toBeGreaterThan(minutes);
            if (text === 'resolved x') expect(absent).toBe(resolve_after);
          }
        }
        expect(states).toEqual(states.map((_, index) => (index % 2 === 0 ? 'firing x' : 'resolved x')));
      },
    ),
    { numRuns: 500 },
  );
});
