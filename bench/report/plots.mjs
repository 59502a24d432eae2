// SVG plots, readable on a light and on a dark page: a bar chart that compares systems, and line charts of growth.
import { median } from '../tools/statistics.mjs';
import { formatMs, SYSTEM_NAMES } from './tables.mjs';

/** @import { MeasuredRequest } from '../types.ts' */

const WIDTH = 960;

const BARS = { left: 350, right: 90, top: 92, height: 15, gap: 14 };

/**
 * The median of each system for every request, on a logarithmic scale.
 * @param {string} title @param {MeasuredRequest[]} cases @param {string[]} systems
 */
export function plotBars(title, cases, systems) {
  const { left, right, top, height, gap } = BARS;
  const groups = cases
    .filter(({ ms }) => systems.every(name => ms[name] !== undefined))
    .map(({ label, ms }) => ({ label, medians: systems.map(name => median(ms[name])) }));
  const values = groups.flatMap(({ medians }) => medians);
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  /** @param {number} value */
  const scale = value => ((Math.log10(value) - low) / (high - low)) * (WIDTH - left - right);
  const groupHeight = systems.length * (height + 1) + gap;
  const bottom = top + groups.length * groupHeight;
  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return svg(WIDTH, bottom + 40, title, [
    text(20, 32, title, { style: 'title' }),
    ...legend(
      20,
      64,
      systems.map(name => SYSTEM_NAMES[name]),
    ),
    text(WIDTH - 20, 64, 'median in milliseconds, logarithmic: shorter is better', {
      style: 'note',
      anchor: 'end',
    }),
    ...decades.flatMap(value => [
      gridLine(left + scale(value), top - 8, left + scale(value), bottom),
      text(left + scale(value), bottom + 22, `${value} ms`, { style: 'note', anchor: 'middle' }),
    ]),
    ...groups.flatMap(({ label, medians }, row) => {
      const y = top + row * groupHeight;
      return [
        text(left - 12, y + (systems.length * (height + 1)) / 2 + 5, label, { anchor: 'end' }),
        ...medians.flatMap((value, color) => [
          bar(left, y + color * (height + 1), scale(value), height, color),
          text(left + scale(value) + 6, y + color * (height + 1) + 12, formatMs(value), { style: 'note' }),
        ]),
      ];
    }),
  ]);
}

const PANEL = { width: 450, height: 250, left: 62, right: 30, top: 40, bottom: 46 };
const PANELS_TOP = 84;

/**
 * The median by number of records in the data set: one panel for each query, one line for each project.
 * @param {string} title @param {MeasuredRequest[]} cases
 */
export function plotGrowth(title, cases) {
  const queries = [...new Set(cases.map(({ query }) => query ?? ''))];
  const projects = [...new Set(cases.map(({ size }) => size ?? ''))];
  const rows = Math.ceil(queries.length / 2);
  return svg(WIDTH, PANELS_TOP + rows * PANEL.height + 10, title, [
    text(20, 32, title, { style: 'title' }),
    ...legend(
      20,
      64,
      projects.map(size => `${size} project`),
    ),
    text(WIDTH - 20, 64, 'median in milliseconds, by records in the data set', {
      style: 'note',
      anchor: 'end',
    }),
    ...queries.flatMap((query, index) =>
      drawPanel(
        query,
        projects.flatMap(size => cases.filter(each => each.query === query && each.size === size)),
        20 + (index % 2) * (PANEL.width + 20),
        PANELS_TOP + Math.floor(index / 2) * PANEL.height,
      ),
    ),
  ]);
}

/** @param {string} query @param {MeasuredRequest[]} cases @param {number} x @param {number} y */
function drawPanel(query, cases, x, y) {
  const sizes = Object.keys(cases[0].ms)
    .map(Number)
    .sort((a, b) => a - b);
  const medians = cases.map(({ ms }) => sizes.map(size => median(ms[size])));
  const top = roundUp(Math.max(...medians.flat()));
  const [left, right] = [x + PANEL.left, x + PANEL.width - PANEL.right];
  const [upper, lower] = [y + PANEL.top, y + PANEL.height - PANEL.bottom];
  const [first, last] = [Math.log(sizes[0]), Math.log(sizes[sizes.length - 1])];
  /** @param {number} size */
  const toX = size => left + ((Math.log(size) - first) / (last - first)) * (right - left);
  /** @param {number} value */
  const toY = value => lower - (value / top) * (lower - upper);
  return [
    text(left, y + 24, query),
    ...[0, 0.5, 1].flatMap(share => [
      gridLine(left, toY(top * share), right, toY(top * share)),
      text(left - 8, toY(top * share) + 5, formatMs(top * share), { style: 'note', anchor: 'end' }),
    ]),
    ...sizes.map(size => text(toX(size), lower + 24, formatSize(size), { style: 'note', anchor: 'middle' })),
    ...medians.flatMap((values, color) =>
      line(
        values.map((value, index) => [toX(sizes[index]), toY(value)]),
        color,
      ),
    ),
  ];
}

/** The next higher 1, 2 or 5 times a power of ten. @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5, 10].find(step => step * power >= value) ?? 10);
}

/** @param {number} size */
function formatSize(size) {
  return size >= 1e6 ? `${size / 1e6} million` : `${Math.round(size / 1000)},000`;
}

const STYLE = `
  text { font: 15px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 19px; font-weight: 600; }
  .note { font-size: 14px; fill: #59636e; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .c0 { fill: #1a7f6b; stroke: #1a7f6b; } .c1 { fill: #b35900; stroke: #b35900; } .c2 { fill: #5c6bc0; stroke: #5c6bc0; }
  .line { fill: none; stroke-width: 2.5; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .note { fill: #9198a1; } .grid { stroke: #3d444d; } .page { fill: #0d1117; }
    .c0 { fill: #4dd0b1; stroke: #4dd0b1; } .c1 { fill: #ff9f43; stroke: #ff9f43; } .c2 { fill: #9fa8ff; stroke: #9fa8ff; }
  }`;

/** @param {number} width @param {number} height @param {string} title @param {string[]} elements */
function svg(width, height, title, elements) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title><style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="8"/>`,
    ...elements,
    '</svg>\n',
  ].join('\n');
}

/** @param {number} x @param {number} y @param {string} content */
function text(x, y, content, { style = '', anchor = 'start' } = {}) {
  return `<text x="${toPixels(x)}" y="${toPixels(y)}" class="${style}" text-anchor="${anchor}">${escapeXml(content)}</text>`;
}

/** @param {number} x @param {number} y @param {number} width @param {number} height @param {number} color */
function bar(x, y, width, height, color) {
  return `<rect x="${toPixels(x)}" y="${toPixels(y)}" width="${toPixels(Math.max(1, width))}" height="${height}" rx="2" class="c${color}"/>`;
}

/** @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 */
function gridLine(x1, y1, x2, y2) {
  return `<line class="grid" x1="${toPixels(x1)}" y1="${toPixels(y1)}" x2="${toPixels(x2)}" y2="${toPixels(y2)}"/>`;
}

/** @param {number[][]} points @param {number} color */
function line(points, color) {
  const path = points.map(([x, y]) => `${toPixels(x)},${toPixels(y)}`).join(' ');
  const dots = points.map(
    ([x, y]) => `<circle class="c${color}" cx="${toPixels(x)}" cy="${toPixels(y)}" r="4"/>`,
  );
  return [`<polyline class="line c${color}" style="fill:none" points="${path}"/>`, ...dots];
}

/** @param {number} x @param {number} y @param {string[]} names */
function legend(x, y, names) {
  let left = x;
  return names.flatMap((name, color) => {
    const entry = [bar(left, y - 12, 14, 14, color), text(left + 20, y, name)];
    left += 44 + name.length * 8;
    return entry;
  });
}

/** @param {number} value */
const toPixels = value => Number(value.toFixed(1));
/** @param {string} content */
const escapeXml = content => content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
