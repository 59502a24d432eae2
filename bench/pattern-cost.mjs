// Searches for the most expensive regular expressions that Dendro accepts (src/endpoint/pattern-cost.ts), and prints how long DuckDB
// takes for a block of 2,048 texts of 2,048 bytes. Run it after a change of that file or of DuckDB:
//   npm run build && node bench/pattern-cost.mjs [seconds]
import { DuckDBInstance } from '@duckdb/node-api';

const BYTES = 2048;
const BLOCK = 2048;
/** A part of a block, so that many expressions can be tried. */
const SAMPLE = 32;

const { findPatternExcess, estimateCost } = await import(
  new URL('../dist/endpoint/pattern-cost.js', import.meta.url).href
);
const connection = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect();

/** @param {number} count */
function random(count) {
  return Math.floor(Math.random() * count);
}

/** @param {readonly string[]} values */
function pick(...values) {
  return values[random(values.length)] ?? '';
}

/** Texts that keep many positions possible: the letter a, and another character at random, at fixed distances or both. */
function chooseTexts() {
  const period = random(3) === 0 ? 1 + random(130) : 1;
  return {
    rare: pick('b', 'b', '-', 'é', 'ab '),
    share: Number(pick('0.5', '0.5', '0.3', '0.1', '0.03')),
    period,
  };
}

/** @param {ReturnType<typeof chooseTexts>} texts @param {number} rows */
async function createTexts({ rare, share, period }, rows) {
  await connection.run('create or replace table texts (url varchar)');
  const appender = await connection.createAppender('texts');
  for (let row = 0; row < rows; row++) {
    let text = '';
    for (let index = random(period); text.length < BYTES; index++)
      text += index % period === 0 && Math.random() < share ? rare[random(rare.length)] : 'a';
    appender.appendVarchar(
      Buffer.from(text)
        .toString('utf8', 0, BYTES)
        .replace(/\uFFFD$/, ''),
    );
    appender.endRow();
  }
  appender.closeSync();
}

/** @param {number} depth @returns {string} */
function createPattern(depth) {
  const sequence = Array.from({ length: 1 + random(depth === 0 ? 8 : 4) }, () => createPart(depth)).join('');
  return depth === 0 ? sequence : `${sequence}${pick('', '', `|${createPattern(depth - 1)}`)}`;
}

/** Literal text with a few choices at about the same distances. */
function createLongPattern() {
  const run = 'a'.repeat(1 + random(250));
  const runs = Array.from({ length: 1 + random(12) }, () =>
    pick('a', run, run, run, `(?:${run}){${1 + random(8)}}`),
  );
  return `${runs.join(pick('[ab]', '.', 'b?', 'a?', '(?:a|b)', '.*', '(?:a|b)*'))}z`;
}

/** @param {number} depth */
function createPart(depth) {
  const atom =
    depth > 0 && random(3) === 0
      ? `(?:${createPattern(depth - 1)})`
      : pick(
          'a',
          'a',
          'b',
          '[ab]',
          '[ab]',
          '.',
          '[^z]',
          '\\w',
          '\\pL',
          '[acegikmoqsuwyb]',
          '\\b',
          '\\B',
          '[aé]',
          '(?i:a)',
          'a'.repeat(random(200)),
          '(?:a|b)',
          '(?:aa|ab|b)',
        );
  const count = 1 + random(Number(pick('4', '20', '70', '300')));
  return `${atom}${pick('', '', '', '*', '+', '?', `{${count}}`, `{0,${count}}`, `{${count},}`)}`;
}

/** @param {string} pattern @param {number} rows */
async function measure(pattern, rows) {
  const before = process.cpuUsage().user;
  try {
    await connection.runAndReadAll('select count(*) from texts where regexp_matches(url, $1)', [pattern]);
  } catch {
    return 0; // RE2 rejects it
  }
  return ((process.cpuUsage().user - before) / 1e6) * (BLOCK / rows);
}

const end = performance.now() + 1000 * Number(process.argv[2] ?? 60);
/** @type {{ pattern: string, texts: ReturnType<typeof chooseTexts>, seconds: number }[]} */
let worst = [];
let tried = 0;
while (performance.now() < end) {
  const texts = chooseTexts();
  await createTexts(texts, SAMPLE);
  for (let index = 0; index < 20; index++) {
    const pattern =
      random(4) === 0
        ? createLongPattern()
        : `${pick('', '', 'a', '(?i)', '\\b')}${createPattern(random(3))}${pick('z', 'z', 'z', '$', 'z$')}`;
    if (pattern.length > 1024 || findPatternExcess(pattern) !== undefined) continue;
    tried++;
    worst.push({ pattern, texts, seconds: await measure(pattern, SAMPLE) });
  }
  worst = worst.sort((a, b) => b.seconds - a.seconds).slice(0, 15);
}
console.log(
  `${tried} accepted expressions tried; the most expensive, in seconds for a block of ${BLOCK} texts:`,
);
for (const { pattern, texts } of worst) {
  await createTexts(texts, BLOCK);
  const seconds = await measure(pattern, BLOCK);
  console.log(seconds.toFixed(1), JSON.stringify({ ...estimateCost(pattern), pattern, texts }));
}
