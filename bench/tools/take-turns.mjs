// Asks several systems the same questions: first whether they answer the same, then how long it takes. They take turns, and
// who goes first changes with every round, so that never more than one of them works and a disturbance meets all.
import { sameAnswer } from './answers.mjs';
import { round } from './statistics.mjs';

/** Now moves on between two calls; an answer that differs for that reason agrees the next time. */
const COMPARE_ATTEMPTS = 5;

/** How many rows the first system answers, and the systems that do not answer the same. */
export async function compareAnswers(call, systems) {
  const [reference, ...others] = systems;
  for (let attempt = 1; ; attempt++) {
    const { rows } = await reference.ask(call, true);
    const different = [];
    for (const system of others) {
      const reason = await findDifference(call, rows, system);
      if (reason !== undefined) different.push({ system: system.name, reason });
    }
    if (different.length === 0 || attempt === COMPARE_ATTEMPTS) return { rowCount: rows.length, different };
  }
}

async function findDifference(call, rows, system) {
  try {
    const answer = await system.ask(call, true);
    if (sameAnswer(call.endpoint, rows, answer.rows)) return undefined;
    const [own, expected] = [answer.rows, rows].map(
      each => `${each.length} rows, ${JSON.stringify(each[0])}`,
    );
    return `another answer: ${own.slice(0, 300)} against ${expected.slice(0, 300)}`;
  } catch (error) {
    return error.message;
  }
}

/**
 * Milliseconds of each system; rounds end early when they have taken `limitMs`, but not before `minRounds`. A system that
 * fails, unless it is the first, costs its own figures alone.
 */
export async function takeTurns(call, systems, { warmUps, rounds, minRounds, limitMs }) {
  const samples = Object.fromEntries(systems.map(({ name }) => [name, []]));
  const failed = [];
  let able = systems;
  const take = async (system, keep) => {
    try {
      const { ms } = await system.ask(call);
      if (keep) samples[system.name].push(round(ms));
    } catch (error) {
      if (system === systems[0]) throw error;
      failed.push({ system: system.name, reason: error.message });
      able = able.filter(each => each !== system);
      delete samples[system.name];
    }
  };
  for (let turn = 0; turn < warmUps; turn++) for (const system of able) await take(system, false);
  const start = performance.now();
  for (let turn = 0; turn < rounds; turn++) {
    if (turn >= minRounds && performance.now() - start > limitMs) break;
    const first = turn % able.length;
    for (const system of [...able.slice(first), ...able.slice(0, first)]) await take(system, true);
  }
  return { samples, failed };
}
