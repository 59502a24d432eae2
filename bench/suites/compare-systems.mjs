// Compares several systems on the same requests. All must return the rows of the first system; then they are timed in
// interleaved rounds. Only one system works at a time, and each round starts with another system, so that other load
// on the machine affects all of them.
import { round } from '../tools/statistics.mjs';

/** @import { BenchRequest, Comparison, Fault, MeasuredRequest, Report, Rounds, Row, System } from '../types.ts' */

/** The current time advances between two requests; a result that differs only for that reason is the same on a retry. */
const COMPARE_ATTEMPTS = 5;

/**
 * @param {BenchRequest[]} requests @param {System[]} systems @param {Rounds} rounds @param {Report} report
 * @returns {Promise<Comparison>}
 */
export async function compareSystems(requests, systems, rounds, report) {
  /** @type {MeasuredRequest[]} */
  const cases = [];
  /** @type {Fault[]} */
  const faults = [];
  for (const [index, request] of requests.entries()) {
    report(`request ${index + 1} of ${requests.length}, ${request.label}`);
    const { rowCount, different } = await compareResults(request, systems);
    const agreeing = systems.filter(({ name }) => different.every(({ system }) => system !== name));
    const { samples, failed } = await timeInterleaved(request, agreeing, rounds);
    faults.push(...[...different, ...failed].map(fault => ({ ...fault, request: request.label })));
    cases.push({ ...request, rowCount, ms: samples });
  }
  /** @type {Record<string, number>} */
  const diskBytes = {};
  for (const { name, diskBytes: measure } of systems) {
    try {
      if (measure !== undefined) diskBytes[name] = await measure();
    } catch (error) {
      faults.push({ system: name, request: 'disk usage', reason: messageOf(error) });
    }
  }
  return { commands: systems.map(({ command }) => command), cases, diskBytes, faults };
}

/**
 * Returns the number of rows of the first system, and the systems that return other rows.
 * @param {BenchRequest} request @param {System[]} systems
 */
async function compareResults(request, systems) {
  const [reference, ...others] = systems;
  for (let attempt = 1; ; attempt++) {
    const { rows } = await reference.query(request, true);
    /** @type {Fault[]} */
    const different = [];
    for (const system of others) {
      const reason = await findDifference(request, rows, system);
      if (reason !== undefined) different.push({ system: system.name, reason });
    }
    if (different.length === 0 || attempt === COMPARE_ATTEMPTS) return { rowCount: rows.length, different };
  }
}

/** @param {BenchRequest} request @param {Row[]} expected @param {System} system */
async function findDifference(request, expected, system) {
  try {
    const { rows } = await system.query(request, true);
    if (isSameResult(request.endpoint, expected, rows)) return undefined;
    const [actualText, expectedText] = [rows, expected].map(each =>
      `${each.length} rows, ${JSON.stringify(each[0])}`.slice(0, 300),
    );
    return `returned ${actualText} instead of ${expectedText}`;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Returns the milliseconds of each system. An error of the first system ends the comparison; another system that fails is
 * removed, and the rest continue.
 * @param {BenchRequest} request @param {System[]} systems @param {Rounds} rounds
 */
async function timeInterleaved(request, systems, { warmUps, rounds, minRounds, limitMs }) {
  /** @type {Record<string, number[]>} */
  const samples = Object.fromEntries(systems.map(({ name }) => [name, []]));
  /** @type {Fault[]} */
  const failed = [];
  let working = systems;
  /** @param {System} system @param {boolean} isWarmUp */
  const time = async (system, isWarmUp) => {
    try {
      const { ms } = await system.query(request);
      if (!isWarmUp) samples[system.name].push(round(ms));
    } catch (error) {
      if (system === systems[0]) throw error;
      failed.push({ system: system.name, reason: messageOf(error) });
      working = working.filter(each => each !== system);
      delete samples[system.name];
    }
  };
  for (let index = 0; index < warmUps; index++) for (const system of working) await time(system, true);
  const start = performance.now();
  for (let index = 0; index < rounds; index++) {
    if (index >= minRounds && performance.now() - start > limitMs) break;
    const first = index % working.length;
    for (const system of [...working.slice(first), ...working.slice(0, first)]) await time(system, false);
  }
  return { samples, failed };
}

/**
 * Whether two systems returned the same rows, although each represents values in its own way.
 * @param {string} endpoint @param {Row[]} one @param {Row[]} other
 */
export function isSameResult(endpoint, one, other) {
  return (
    one.length === other.length &&
    JSON.stringify(one.map(row => normalizeRow(endpoint, row))) ===
      JSON.stringify(other.map(row => normalizeRow(endpoint, row)))
  );
}

/** @param {string} endpoint @param {Row} row */
function normalizeRow(endpoint, row) {
  if (endpoint !== 'logs.all' && endpoint !== 'logs.search') return row.map(toNumber);
  const [id, timestamp, message, metadata] = row;
  const parsed = typeof metadata === 'string' ? JSON.parse(metadata) : metadata;
  return [id, Number(timestamp), message, sortKeys(parsed)];
}

/**
 * A timestamp may be text. The last digits of an average depend on the order of the additions, so they are dropped.
 * @param {unknown} value
 */
function toNumber(value) {
  const text = String(value);
  const number = /^\d{4}-\d\d-\d\dT/.test(text)
    ? Date.parse(text.endsWith('Z') ? text : `${text}Z`) * 1000
    : Number(value);
  return Number(number.toPrecision(Number.isInteger(number) ? 17 : 9));
}

/**
 * PostgreSQL's jsonb does not keep the order of keys.
 * @param {any} value
 * @returns {unknown}
 */
function sortKeys(value) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map(key => [key, sortKeys(value[key])]),
  );
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
