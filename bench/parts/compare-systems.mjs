// Every call, asked of every system: those that answer like the first are timed, the others are named.
import { compareAnswers, takeTurns } from '../tools/take-turns.mjs';

export async function compareSystems(calls, systems, turns, report) {
  const cases = [];
  const faults = [];
  for (const [index, call] of calls.entries()) {
    report(`${index + 1} of ${calls.length} calls, ${call.label}`);
    const { rowCount, different } = await compareAnswers(call, systems);
    faults.push(...different.map(fault => ({ ...fault, call: call.label })));
    const agreeing = systems.filter(({ name }) => different.every(({ system }) => system !== name));
    cases.push({ ...call, rowCount, ms: await takeTurns(call, agreeing, turns) });
  }
  const diskBytes = {};
  for (const system of systems) if (system.diskBytes) diskBytes[system.name] = await system.diskBytes();
  return { commands: systems.map(({ command }) => command), cases, diskBytes, faults };
}
