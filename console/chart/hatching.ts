// Hatches the buckets that are incomplete: the first one if the time range starts within it, and the last one if the time range
// ends within it or while it is in progress.
import type uPlot from 'uplot';
import { type ChartData, findIncompleteReason } from './chart-data.ts';

const STRIPE_PIXELS = 2;
const STRIPE_DISTANCE_PIXELS = 6;

export function hasIncompleteBuckets(data: ChartData): boolean {
  return data.starts.some((_, i) => findIncompleteReason(data, i) !== undefined);
}

/** Cuts stripes out of the bars. The plot has drawn them already. */
export function hatchBars(plot: uPlot, data: ChartData): void {
  const { ctx } = plot;
  ctx.save();
  ctx.globalCompositeOperation = 'destination-out';
  ctx.strokeStyle = '#000'; // only its opacity matters
  drawStripes(plot, data);
  ctx.restore();
}

/** Draws stripes behind the lines. The plot has not drawn them yet. */
export function hatchBackground(plot: uPlot, data: ChartData, color: string): void {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = color;
  drawStripes(plot, data);
  ctx.restore();
}

function drawStripes(plot: uPlot, data: ChartData): void {
  const { ctx, bbox } = plot;
  ctx.lineWidth = STRIPE_PIXELS * devicePixelRatio;
  for (const [i, start] of data.starts.entries()) {
    if (findIncompleteReason(data, i) === undefined) continue;
    const left = plot.valToPos(start, 'x', true);
    const right = plot.valToPos(start + data.bucketSeconds, 'x', true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.beginPath();
    for (let x = left - bbox.height; x < right; x += STRIPE_DISTANCE_PIXELS * devicePixelRatio) {
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
  }
}
