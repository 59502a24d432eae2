// Tables and progress for a terminal or a log, and tables for a page.

export function formatTable({ title, header, rows }) {
  const lines = [header, ...rows].map(cells => cells.map(String));
  const widths = header.map((_, column) => Math.max(...lines.map(cells => cells[column].length)));
  const isRight = header.map((_, column) => holdsFigures(rows, column));
  const format = cells =>
    cells
      .map((cell, column) => (isRight[column] ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
      .join('  ')
      .trimEnd();
  const rule = widths.map(width => '-'.repeat(width)).join('  ');
  return `\n${title}\n${[format(lines[0]), rule, ...lines.slice(1).map(format)].join('\n')}\n`;
}

export function formatMarkdown({ title, header, rows }) {
  const line = cells => `| ${cells.join(' | ')} |`;
  const rule = header.map((_, column) => (holdsFigures(rows, column) ? '--:' : '---'));
  return [`**${title}**`, '', line(header), line(rule), ...rows.map(line)].join('\n');
}

/** Figures stand right, texts left. */
function holdsFigures(rows, column) {
  return rows.every(cells => /^(\d[\d.,]*( ?[%×])?|–)?$/.test(String(cells[column])));
}

export function goalsTable(goals) {
  return {
    title: 'What is to be reached, and what was',
    header: ['what', 'goal', 'figure', 'reached'],
    rows: goals.map(({ what, goal, figure, reached }) => [
      what,
      goal,
      figure,
      reached === undefined ? '–' : reached ? 'yes' : 'no',
    ]),
  };
}

/** One line that renews itself on a terminal; in a log, one line every few seconds. */
export function makeProgress(stream, everyMs = 5000) {
  let last = 0;
  return {
    report(text) {
      if (stream.isTTY) stream.write(`\r\x1b[2K${text}`);
      else if (performance.now() - last > everyMs) {
        last = performance.now();
        stream.write(`${text}\n`);
      }
    },
    end() {
      if (stream.isTTY) stream.write('\r\x1b[2K');
    },
  };
}
