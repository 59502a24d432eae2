// What all projects of the synthetic platform send in a stretch of time, for the past and for the present alike.
import { DEMO_PROJECTS, type DemoProject, type Moment } from './platform.ts';
import type { Random } from './random.ts';
import { type Shipped, shipInvocation, shipRequest } from './shipped-record.ts';

export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  /** When the demo started; the projects' characters count from there. */
  readonly startMs: number;
  /** 1 is the platform as it is; a smaller one sends less of everything. */
  readonly scale: number;
}

/** Records of one stretch, which should be short against an hour: rates are taken from its middle. */
export function shipStretch(stretch: Stretch, random: Random): Shipped[] {
  return DEMO_PROJECTS.flatMap(project => shipProject(project, stretch, random));
}

function shipProject(project: DemoProject, stretch: Stretch, random: Random): Shipped[] {
  const { fromMs, toMs, startMs, scale } = stretch;
  const momentAt = (ms: number): Moment => ({ ms, ago: (startMs - ms) / 1000 });
  const middle = momentAt((fromMs + toMs) / 2);
  const seconds = ((toMs - fromMs) / 1000) * scale;
  const shipped: Shipped[] = [];
  const ship = (perSecond: number, make: typeof shipRequest) => {
    for (let left = random.poisson(perSecond * seconds); left > 0; left--) {
      const ms = Math.floor(fromMs + random.next() * (toMs - fromMs));
      shipped.push(make(project, momentAt(ms), random));
    }
  };
  ship(project.requestsPerSecond(middle), shipRequest);
  ship(project.invocationsPerSecond(middle), shipInvocation);
  return shipped;
}
