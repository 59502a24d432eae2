// What the plots have in common: a picture that is readable on a light and on a dark page, without a dependency.

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

export function picture(width, height, title, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${toXml(title)}</title><style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${height}" rx="8"/>`,
    ...parts.flat(),
    '</svg>\n',
  ].join('\n');
}

export function text(x, y, words, { name = '', anchor = 'start' } = {}) {
  return `<text x="${at(x)}" y="${at(y)}" class="${name}" text-anchor="${anchor}">${toXml(words)}</text>`;
}

export function bar(x, y, width, height, color) {
  return `<rect x="${at(x)}" y="${at(y)}" width="${at(Math.max(1, width))}" height="${height}" rx="2" class="c${color}"/>`;
}

export function gridLine(x1, y1, x2, y2) {
  return `<line class="grid" x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}"/>`;
}

export function line(points, color) {
  const path = points.map(([x, y]) => `${at(x)},${at(y)}`).join(' ');
  const dots = points.map(([x, y]) => `<circle class="c${color}" cx="${at(x)}" cy="${at(y)}" r="4"/>`);
  return [`<polyline class="line c${color}" style="fill:none" points="${path}"/>`, ...dots];
}

export function legend(x, y, names) {
  let left = x;
  return names.flatMap((name, color) => {
    const entry = [bar(left, y - 12, 14, 14, color), text(left + 20, y, name)];
    left += 44 + name.length * 8;
    return entry;
  });
}

const at = value => Number(value.toFixed(1));
const toXml = words => String(words).replaceAll('&', '&amp;').replaceAll('<', '&lt;');
