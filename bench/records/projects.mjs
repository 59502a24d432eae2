// The projects of the made-up platform, always the same: 2,000, the largest first, and three more whose records stay the
// same however large the platform around them is.
const SEED = 20_240_229;
const PROJECT_COUNT = 2000;

/** mulberry32: small, fast, and the same on every machine. Numbers from 0 to below 1. */
export function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function listProjects() {
  return listNames().slice(0, PROJECT_COUNT);
}

/** Projects by size: of 5 million records about 450,000, 8,500 and 440. */
export function pickProjects() {
  const projects = listProjects();
  return { largest: projects[0], middle: projects[76], small: projects[1500] };
}

/** The projects whose records stay the same: a tenth, a hundredth and 1 of 2,500 of the smallest platform's. */
export function listSteadyProjects(smallestPlatform) {
  const [largest, middle, small] = listNames().slice(PROJECT_COUNT);
  return [
    { size: 'largest', project: largest, records: Math.round(smallestPlatform / 10) },
    { size: 'middle', project: middle, records: Math.round(smallestPlatform / 100) },
    { size: 'small', project: small, records: Math.round(smallestPlatform / 2500) },
  ];
}

function listNames() {
  const random = makeRandom(SEED);
  return Array.from({ length: PROJECT_COUNT + 3 }, () => letters(random, 20));
}

function letters(random, length) {
  let text = '';
  while (text.length < length) text += String.fromCharCode(97 + Math.floor(random() * 26));
  return text;
}
