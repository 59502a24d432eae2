// Every call, asked of every system: those that answer like the first are timed, the others are named.
import { compareAnswers, takeTurns } from '../tools/take-turns.mjs';

export async function compareSystems(calls, systems, turns, report) {
  const cases = [];
  const faults = [];
  for (const [index, call] of calls.entries()) {
    report(`${index + 1} of ${calls.length} calls, ${call.label}`);
    const { rowCount, different } = await compareAnswers(call, systems);
    const agreeing = systems.filter(({ name }) => different.every(({ system }) => system !== name));
    const { samples, failed } = await takeTurns(call, agreeing, turns);
    faults.push(...[...different, ...failed].map(fault => ({ ...fault, call: call.label })));
    cases.push({ ...call, rowCount, ms: samples });
  }
  const diskBytes = {};
  for (const { name, diskBytes: measure } of systems) {
    try {
      if (measure !== undefined) diskBytes[name] = await measure();
    } catch (error) {
      faults.push({ system: name, call: 'disk', reason: error.message });
    }
  }
  return { commands: systems.map(({ command }) => command), cases, diskBytes, faults };
}
