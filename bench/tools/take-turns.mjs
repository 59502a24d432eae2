// Asks several systems the same questions: first whether they answer the same, then how long it takes. They take turns, and
// who goes first changes with every round, so that never more than one of them works and a disturbance meets all.
import { sameAnswer } from './answers.mjs';
import { round } from './statistics.mjs';

/** Now moves on between two calls; an answer that differs for that reason agrees the next time. */
const COMPARE_ATTEMPTS = 5;

/** Answers the names of the systems that agree with the first, with the number of rows; and what the others said. */
export async function compareAnswers(call, systems) {
  const [reference, ...others] = systems;
  let different = [];
  for (let attempt = 0; attempt < COMPARE_ATTEMPTS; attempt++) {
    const { rows } = await reference.ask(call, true);
    different = [];
    for (const system of others) {
      try {
        const answer = await system.ask(call, true);
        if (!sameAnswer(call.endpoint, rows, answer.rows))
          different.push({
            system: system.name,
            reason:
              `another answer: ${answer.rows.length} rows against ${rows.length}, ${JSON.stringify(answer.rows[0])} against ${JSON.stringify(rows[0])}`.slice(
                0,
                700,
              ),
          });
      } catch (error) {
        different.push({ system: system.name, reason: error.message });
      }
    }
    if (different.length === 0) return { rowCount: rows.length, different };
  }
  return { rowCount: undefined, different };
}

/** Milliseconds of each system; rounds end early when they have taken `limitMs`, but not before `minRounds`. */
export async function takeTurns(call, systems, { warmUps, rounds, minRounds, limitMs }) {
  const samples = Object.fromEntries(systems.map(({ name }) => [name, []]));
  for (let turn = 0; turn < warmUps; turn++) for (const system of systems) await system.ask(call);
  const start = performance.now();
  for (let turn = 0; turn < rounds; turn++) {
    if (turn >= minRounds && performance.now() - start > limitMs) break;
    for (let place = 0; place < systems.length; place++) {
      const system = systems[(turn + place) % systems.length];
      samples[system.name].push(round((await system.ask(call)).ms));
    }
  }
  return samples;
}
