// Creates the records that all projects of the synthetic platform send in a period, for the history and the live traffic.
import { DEMO_PROJECTS, type DemoProject, type Moment } from './platform.ts';
import type { Random } from './random.ts';
import { createInvocation, createRequest, type SentRecord } from './sent-record.ts';

export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
  /** The start of the demo; the projects' incidents and trends are relative to it. */
  readonly startMs: number;
  /** 1 is the normal amount of traffic. */
  readonly scale: number;
}

/** The period should be much shorter than an hour: rates are taken from its middle. */
export function createTraffic(period: Period, random: Random): SentRecord[] {
  return DEMO_PROJECTS.flatMap(project => createProjectTraffic(project, period, random));
}

function createProjectTraffic(project: DemoProject, period: Period, random: Random): SentRecord[] {
  const { fromMs, toMs, startMs, scale } = period;
  const momentAt = (ms: number): Moment => ({ ms, ago: (startMs - ms) / 1000 });
  const middle = momentAt((fromMs + toMs) / 2);
  const seconds = ((toMs - fromMs) / 1000) * scale;
  const records: SentRecord[] = [];
  const add = (perSecond: number, create: typeof createRequest) => {
    for (let left = random.poisson(perSecond * seconds); left > 0; left--) {
      const ms = Math.floor(fromMs + random.next() * (toMs - fromMs));
      records.push(create(project, momentAt(ms), random));
    }
  };
  add(project.requestsPerSecond(middle), createRequest);
  add(project.invocationsPerSecond(middle), createInvocation);
  return records;
}
