// The SQL that computes the columns of the searchable fields (domain/log-fields.ts) from the metadata. Every apply plans this SQL,
// which takes milliseconds, so it has few and small expressions. nullif, for example, duplicates its argument.
import type { LogKind } from '../../domain/log-columns.ts';
import {
  type MetadataField,
  metadataFieldsOf,
  STATUS_JSON,
  WHOLE_NUMBER_JSON,
} from '../../domain/log-fields.ts';

/**
 * A SELECT of all columns of a relation and the columns of the kind's searchable fields. The relation is a table, or a subquery in
 * parentheses, with a column `metadata` of type VARCHAR or JSON.
 */
export function selectWithFieldColumns(kind: LogKind, relation: string): string {
  const fields = metadataFieldsOf(kind);
  const values = fields.map(({ field, column }) => {
    const text = field === 'path' ? `regexp_extract(${column}, '^[^?]*')` : column;
    return `nullif(${text}, '') as ${column}`;
  });
  const texts = selectOtherPlaces(
    fields.filter(({ keys }) => keys.length > 1),
    selectUsualPlaces(fields, relation),
  );
  return `select * replace (${values.join(', ')}) from (${texts})`;
}

/** Reads all fields with one parse of the metadata. A text is empty if the value is not valid. */
function selectUsualPlaces(fields: readonly MetadataField[], relation: string): string {
  const found = extract(fields.map(({ keys }) => toPath(...keys)));
  const texts = fields.map(({ field, column }, index) => {
    const json = `found[${index + 1}]::varchar`;
    return `${field === 'status' ? toStatus(json) : toText(json)} as ${column}`;
  });
  return `select * exclude (found), ${texts.join(', ')} from (select *, ${found} as found from ${relation})`;
}

/**
 * Parses the metadata of records that lack a field of an object once more. Some senders wrap every object in an array of one.
 * OpenTelemetry has flat attributes such as `request.method`.
 */
function selectOtherPlaces(fields: readonly MetadataField[], select: string): string {
  if (fields.length === 0) return select;
  const places = fields.map(({ column, keys: [object = '', ...others] }) => ({
    column,
    wrapped: toPath(object, 0, ...others),
    flat: toPath([object, ...others].join('.')),
    secondItem: toPath(object, 1),
  }));
  // The paths of the status are first.
  const paths = places.flatMap(({ wrapped, flat }) => [wrapped, flat]);
  const statusPaths = fields[0]?.field === 'status' ? 2 : 0;
  paths.push(...new Set(places.map(({ secondItem }) => secondItem)));
  const textAt = (path: string) => `found[${paths.indexOf(path) + 1}]`;
  const found = `list_transform(${extract(paths)},
    lambda json, i: case when i <= ${statusPaths} then ${toStatus('json::varchar')} else ${toText('json::varchar')} end)`;
  const texts = places.map(
    ({ column, wrapped, flat, secondItem }) =>
      `case when ${column} <> '' then ${column}
        when ${textAt(wrapped)} <> '' and ${textAt(secondItem)} is null then ${textAt(wrapped)}
        else ${textAt(flat)} end as ${column}`,
  );
  const isComplete = fields.map(({ column }) => `${column} <> ''`).join(' and ');
  return `select * exclude (found) replace (${texts.join(', ')})
    from (select *, case when (${isComplete}) is not true then ${found} end as found from (${select}))`;
}

/** A list of the JSON at each path; null where there is none. */
function extract(paths: readonly string[]): string {
  return `json_extract(metadata, [${paths.map(path => `'${path}'`).join(', ')}])`;
}

/** Steps are keys of objects and indexes in arrays. */
function toPath(...steps: readonly (string | number)[]): string {
  return `$${steps.map(step => (typeof step === 'number' ? `[${step}]` : `."${step}"`)).join('')}`;
}

function toStatus(json: string): string {
  return `regexp_extract(${json}, '${STATUS_JSON}', 1)`;
}

function toText(json: string): string {
  return `case when starts_with(${json}, '"') then ${json} ->> '$' else regexp_extract(${json}, '${WHOLE_NUMBER_JSON}', 1) end`;
}
