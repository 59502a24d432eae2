// What the same project's questions cost as the platform grows: a panel for each question, a line for each project.
import { median } from '../tools/statistics.mjs';
import { ms } from './format.mjs';
import { gridLine, legend, line, picture, text } from './svg.mjs';

const WIDTH = 960;
const PANEL = { width: 450, height: 250, left: 62, right: 30, top: 40, bottom: 46 };
const TOP = 84;

export function plotGrowth(title, cases) {
  const questions = [...new Set(cases.map(({ question }) => question))];
  const projects = [...new Set(cases.map(({ size }) => size))];
  const rows = Math.ceil(questions.length / 2);
  return picture(WIDTH, TOP + rows * PANEL.height + 10, title, [
    text(20, 32, title, { name: 'title' }),
    legend(
      20,
      64,
      projects.map(size => `${size} project`),
    ),
    text(WIDTH - 20, 64, 'median, milliseconds, by records in the platform', { name: 'note', anchor: 'end' }),
    questions.flatMap((question, index) =>
      drawPanel(
        question,
        projects.map(size => cases.find(each => each.question === question && each.size === size)),
        20 + (index % 2) * (PANEL.width + 20),
        TOP + Math.floor(index / 2) * PANEL.height,
      ),
    ),
  ]);
}

function drawPanel(question, cases, x, y) {
  const sizes = Object.keys(cases[0].ms)
    .map(Number)
    .sort((a, b) => a - b);
  const medians = cases.map(({ ms: samples }) => sizes.map(size => median(samples[size])));
  const top = niceTop(Math.max(...medians.flat()));
  const [left, right] = [x + PANEL.left, x + PANEL.width - PANEL.right];
  const [upper, lower] = [y + PANEL.top, y + PANEL.height - PANEL.bottom];
  const [first, last] = [Math.log(sizes[0]), Math.log(sizes.at(-1))];
  const placeX = size => left + ((Math.log(size) - first) / (last - first)) * (right - left);
  const placeY = value => lower - (value / top) * (lower - upper);
  return [
    text(left, y + 24, question),
    ...[0, 0.5, 1].flatMap(share => [
      gridLine(left, placeY(top * share), right, placeY(top * share)),
      text(left - 8, placeY(top * share) + 5, ms(top * share), { name: 'note', anchor: 'end' }),
    ]),
    ...sizes.map(size =>
      text(placeX(size), lower + 24, shortCount(size), { name: 'note', anchor: 'middle' }),
    ),
    ...medians.flatMap((values, color) =>
      line(
        values.map((value, index) => [placeX(sizes[index]), placeY(value)]),
        color,
      ),
    ),
  ];
}

/** 1, 2 or 5 times a power of ten. */
function niceTop(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5, 10].find(step => step * power >= value) ?? 10);
}

function shortCount(value) {
  return value >= 1e6 ? `${value / 1e6} million` : `${Math.round(value / 1000)},000`;
}
