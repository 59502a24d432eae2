// The schema of the key `alert` in endpoint.yaml. docs/alerts.md describes its keys.
import * as v from 'valibot';
import { parseDuration } from '../domain/duration.ts';
import { description, name } from './parameter-definition.ts';

/** Milliseconds. */
const duration = (min: string, max: string) =>
  v.pipe(
    v.string(`must be a duration from ${min} to ${max}, such as 30s, 15m or 12h`),
    v.transform(text => (parseDuration(text) ?? Number.NaN) * 1000),
    v.check(
      ms => ms >= toMs(min) && ms <= toMs(max),
      `must be a duration from ${min} to ${max}, such as 30s, 15m or 12h`,
    ),
  );

function toMs(text: string): number {
  return (parseDuration(text) ?? 0) * 1000;
}

/** Values of the endpoint's parameters, as a request has them. */
const parameterSet = v.record(
  name,
  v.pipe(v.union([v.string(), v.number(), v.boolean()]), v.transform(String)),
);

export const alert = v.strictObject({
  every: duration('10s', '1d'),
  /** How long a row must persist before it fires. */
  for: v.optional(duration('0s', '7d'), '0s'),
  /** The columns that name an instance. Rows with the same values are the same instance; without columns, all rows are one. */
  key: v.optional(v.array(name), []),
  /** Remind after this time; undefined: never. */
  repeat: v.optional(duration('1m', '7d')),
  /** Successful evaluations without the row before the instance resolves. */
  resolve_after: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100)), 2),
  /** Fires if the newest record of the log kinds that the endpoint reads is older than this. */
  no_data: v.optional(v.strictObject({ alert: duration('10s', '7d') })),
  /** A list of sets is several alerts. */
  parameters: v.optional(v.union([parameterSet, v.pipe(v.array(parameterSet), v.nonEmpty())]), {}),
  severity: v.optional(v.picklist(['info', 'warning', 'critical']), 'warning'),
  /** Text with {column} placeholders; undefined: the description of the endpoint. */
  summary: v.optional(description),
  /** Names of receivers; undefined: all of them. */
  notify: v.optional(v.array(v.string())),
});

export type AlertDefinition = v.InferOutput<typeof alert>;
