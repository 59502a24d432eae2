// Creates the records of all projects of the synthetic platform for a period. Used for the history and the live traffic.

import { createEdgeRecord, createFunctionRecord, type DemoRecord } from './demo-record.ts';
import { DEMO_PROJECTS, type DemoProject, type Moment } from './platform.ts';
import type { Random } from './random.ts';

/** All times are Unix milliseconds. */
export interface Period {
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  /** The start of the demo; the projects' incidents and trends are relative to it. */
  readonly demoStartMs: number;
  /** 1 is the normal amount of traffic. */
  readonly scale: number;
}

/** The period should be much shorter than an hour, because the rates at its middle apply to all of it. */
export function createTraffic(period: Period, random: Random): DemoRecord[] {
  return DEMO_PROJECTS.flatMap(project => createProjectTraffic(project, period, random));
}

function createProjectTraffic(project: DemoProject, period: Period, random: Random): DemoRecord[] {
  const { fromMs, toMs, demoStartMs, scale } = period;
  const momentAt = (ms: number): Moment => ({ ms, ago: (demoStartMs - ms) / 1000 });
  const middle = momentAt((fromMs + toMs) / 2);
  const scaledSeconds = ((toMs - fromMs) / 1000) * scale;
  const records: DemoRecord[] = [];
  const add = (perSecond: number, create: typeof createEdgeRecord) => {
    for (let remaining = random.poisson(perSecond * scaledSeconds); remaining > 0; remaining--) {
      const ms = Math.floor(fromMs + random.next() * (toMs - fromMs));
      records.push(create(project, momentAt(ms), random));
    }
  };
  add(project.requestsPerSecond(middle), createEdgeRecord);
  add(project.invocationsPerSecond(middle), createFunctionRecord);
  return records;
}
