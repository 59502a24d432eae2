// The generated data sets: their projects, and the time span of their records. Project names are the same in every run.

/** @import { Dataset, FixedProject } from '../types.ts' */

/** The log kinds of a data set, with the same number of records each. */
export const KINDS = /** @type {const} */ (['edge', 'function_edge']);

const SEED = 20_240_229;
const PROJECT_COUNT = 2000;
const DAY_MS = 86_400_000;
/** The oldest records are this much younger than the retention of 90 days, so that none expires during a run. */
const RETENTION_MARGIN_MS = 3_600_000;
/** Timestamps continue into the future, so that the shortest windows stay full during a run. */
const AHEAD_MS = 45 * 60_000;

/**
 * Returns a function that creates data sets. All of them have the same time span, so that the records of the fixed projects
 * are the same too. The number of those records depends on the smallest data set.
 * @param {number} smallestPerKind
 * @returns {(perKind: number) => Dataset}
 */
export function datasetFactory(smallestPerKind) {
  const startMs = Date.now() - 90 * DAY_MS + RETENTION_MARGIN_MS;
  const span = { startMicros: startMs * 1000, spanMicros: (Date.now() + AHEAD_MS - startMs) * 1000 };
  const fixedProjects = listFixedProjects(smallestPerKind);
  return perKind => ({ perKind, fixedProjects, ...span });
}

/** The projects of a data set, the largest first, without the fixed projects. */
export function listProjects() {
  return listNames().slice(0, PROJECT_COUNT);
}

/** Three projects by size. Of 5 million records they have about 450,000, 8,500 and 440. */
export function pickProjects() {
  const projects = listProjects();
  return { largest: projects[0], middle: projects[76], small: projects[1500] };
}

/**
 * Per log kind, they have 1/10, 1/100 and 1/2,500 of the records of the smallest data set.
 * @param {number} smallestPerKind
 * @returns {FixedProject[]}
 */
function listFixedProjects(smallestPerKind) {
  const [largest, middle, small] = listNames().slice(PROJECT_COUNT);
  return [
    { size: 'largest', project: largest, records: Math.round(smallestPerKind / 10) },
    { size: 'middle', project: middle, records: Math.round(smallestPerKind / 100) },
    { size: 'small', project: small, records: Math.round(smallestPerKind / 2500) },
  ];
}

function listNames() {
  const random = createRandom(SEED);
  return Array.from({ length: PROJECT_COUNT + 3 }, () => createName(random, 20));
}

/** @param {() => number} random @param {number} length */
function createName(random, length) {
  let text = '';
  while (text.length < length) text += String.fromCharCode(97 + Math.floor(random() * 26));
  return text;
}

/**
 * mulberry32: a small random number generator with the same sequence on every machine. Returns numbers in [0, 1).
 * @param {number} seed
 */
export function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
