// The SQL that computes the columns of the searchable fields (domain/log-fields.ts) from the metadata.
import type { LogKind } from '../../domain/log-columns.ts';
import {
  type LogField,
  type MetadataField,
  metadataFieldsOf,
  STATUS_JSON,
  WHOLE_NUMBER_JSON,
} from '../../domain/log-fields.ts';

/**
 * A SELECT of all columns of a relation and the columns of the kind's searchable fields. The relation is a table, or a subquery in
 * parentheses, with a column `metadata` of type VARCHAR or JSON.
 *
 * All fields are read with one parse of the metadata. A record that lacks a field of an object, such as `request.method`, is parsed
 * once more, because the field can be in one of its less usual places.
 */
export function selectWithFieldColumns(kind: LogKind, relation: string): string {
  const fields = metadataFieldsOf(kind);
  const { list, itemAt } = extractPaths(fields.map(({ keys }) => toPath(...keys)));
  const columns = fields.map(
    ({ field, keys, column }) => `${readJson(field, itemAt(toPath(...keys)))} as ${column}`,
  );
  const select = `select * exclude (found), ${columns.join(', ')} from (select *, ${list} as found from ${relation})`;
  const fieldsOfObjects = fields.filter(({ keys }) => keys.length > 1);
  return fieldsOfObjects.length === 0 ? select : searchOtherPlaces(fieldsOfObjects, `(${select})`);
}

/** Some senders wrap every object in an array of one. OpenTelemetry has flat attributes such as `request.method`. */
function searchOtherPlaces(fields: readonly MetadataField[], relation: string): string {
  const places = fields.map(({ field, column, keys: [object = '', ...keys] }) => ({
    field,
    column,
    wrapped: toPath(object, 0, ...keys),
    secondItem: toPath(object, 1),
    flat: toPath([object, ...keys].join('.')),
  }));
  const { list, itemAt } = extractPaths(
    places.flatMap(({ wrapped, secondItem, flat }) => [wrapped, secondItem, flat]),
  );
  const isAnyMissing = fields.map(({ column }) => `${column} is null`).join(' or ');
  const columns = places.map(({ field, column, wrapped, secondItem, flat }) => {
    const ifArrayOfOne = `case when ${itemAt(secondItem)} is null then ${readJson(field, itemAt(wrapped))} end`;
    return `coalesce(${column}, ${ifArrayOfOne}, ${readJson(field, itemAt(flat))}) as ${column}`;
  });
  return `select * exclude (found) replace (${columns.join(', ')})
    from (select *, case when ${isAnyMissing} then ${list} end as found from ${relation})`;
}

/** `list` is SQL for a list with the JSON at each path, which `itemAt` reads from its alias `found`. */
function extractPaths(paths: readonly string[]): { list: string; itemAt: (path: string) => string } {
  const distinct = [...new Set(paths)];
  return {
    list: `json_extract(metadata, [${distinct.map(path => `'${path}'`).join(', ')}])`,
    itemAt: path => `found[${distinct.indexOf(path) + 1}]`,
  };
}

/** Steps are keys of objects and indexes in arrays. */
function toPath(...steps: readonly (string | number)[]): string {
  return `$${steps.map(step => (typeof step === 'number' ? `[${step}]` : `."${step}"`)).join('')}`;
}

/** SQL for a field as text; null if the JSON is not a valid value. */
function readJson(field: LogField, json: string): string {
  if (field === 'status') return `nullif(regexp_extract(${json}::varchar, '${STATUS_JSON}', 1), '')`;
  const text = field === 'path' ? `split_part(${json} ->> '$', '?', 1)` : `${json} ->> '$'`;
  return `case when starts_with(${json}::varchar, '"') then nullif(${text}, '')
    else nullif(regexp_extract(${json}::varchar, '${WHOLE_NUMBER_JSON}', 1), '') end`;
}
