// Checks a query: one SELECT of known clauses, from one known table, joined only with objects of its metadata. Everything else is
// refused, with its position. Resolves names; read-value.ts reads the expressions.
import { isDeepStrictEqual } from 'node:util';
import { suggest } from '../domain/closest-name.ts';
import { MAX_PATH_KEYS } from '../domain/limits.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { ParsedQuery, TreeNode } from './parse-sql.ts';
import { hasAggregate, isAggregate, keyOf, type Path, type Query, type Value } from './query.ts';
import { TRUE, ValueReader } from './read-value.ts';
import { isGiven, short, TreeReader, toNames, toNode, toNodes, toText } from './tree.ts';

/** Undefined: Studio reads the table, but only Supabase's own platform has records of it. */
const TABLES = new Map<string, LogKind | undefined>([
  ['edge_logs', 'edge'],
  ['postgres_logs', 'postgres'],
  ['function_edge_logs', 'function_edge'],
  ['function_logs', 'function'],
  ['auth_logs', 'auth'],
  ['realtime_logs', 'realtime'],
  ['storage_logs', 'storage'],
  ['postgrest_logs', 'rest'],
  ['pgbouncer_logs', 'pooler'],
  ['supavisor_logs', 'pooler'],
  ['auth_audit_logs', undefined],
  ['pg_upgrade_logs', undefined],
  ['pg_cron_logs', undefined],
  ['etl_replication_logs', undefined],
  ['multigres_logs', undefined],
]);

const COLUMNS = new Map<string, Value>([
  ['id', { column: 'id', type: 'text' }],
  ['timestamp', { column: 'timestamp', type: 'timestamp' }],
  ['event_message', { column: 'event_message', type: 'text' }],
  ['metadata', { paths: [[]], type: 'json' }],
  ['identifier', { column: 'project', type: 'text' }],
]);

export function checkQuery(parsed: ParsedQuery): Query {
  return new Checker(parsed).check();
}

class Checker {
  readonly #select: TreeNode;
  readonly #tree: TreeReader;
  readonly #values: ValueReader;
  #kind: LogKind | undefined;
  /** The table and its alias, in lower case. */
  readonly #tables = new Set<string>();
  /** The objects that unnest reads, by their alias in lower case, in the order of the joins. */
  readonly #objects = new Map<string, Path>();
  readonly #required: Path[] = [];
  /** The aliases in lower case, except those that are also the name of a field in their expression. */
  readonly #aliases: ReadonlySet<string>;
  /** The output columns, by their name in lower case, while a clause is read that can refer to them. */
  #outputs: ReadonlyMap<string, Value> = new Map();
  #isHaving = false;

  constructor({ select, lexed }: ParsedQuery) {
    this.#select = select;
    const aliases = toNodes(select['select_list']).map(node => ({
      alias: toText(node['alias']).toLowerCase(),
      names: listLastNames(node),
    }));
    this.#aliases = new Set(
      aliases.filter(({ alias, names }) => !names.includes(alias)).map(each => each.alias),
    );
    this.#tree = new TreeReader(lexed);
    this.#values = new ValueReader(this.#tree, (names, node) => this.#resolve(names, node));
  }

  check(): Query {
    const select = this.#select;
    if (select['type'] !== 'SELECT_NODE')
      throw this.#tree.refuseWord(
        'union, intersect and except are not supported',
        /^(union|intersect|except)$/i,
      );
    this.#tree.only(
      select,
      'modifiers select_list from_table where_clause group_expressions group_sets having',
    );
    this.#readFrom(toNode(select['from_table']));
    const where = this.#readCondition('where_clause');
    if (where !== undefined && hasAggregate(where.value))
      throw this.#tree.refuse('an aggregate in where is not supported; use having', where.node);
    let unnamed = 0;
    const outputs = toNodes(select['select_list']).map(node => {
      const ownName = node['class'] === 'COLUMN_REF' ? toNames(node).at(-1) : undefined;
      const name = toText(node['alias']) || (ownName ?? `f${unnamed++}_`);
      return { name, value: this.#values.read(node), node };
    });
    for (const [index, { name, node }] of outputs.entries())
      if (outputs.findIndex(other => other.name === name) < index)
        throw this.#tree.refuse(`two columns with the name ${name} are not supported`, node);
    this.#outputs = new Map(outputs.map(({ name, value }) => [name.toLowerCase(), value]));
    const groups = this.#isDistinct() ? this.#groupByAll(outputs) : this.#readGroups(outputs);
    this.#isHaving = true; // here, an alias hides a column
    const having = this.#readCondition('having');
    this.#isHaving = false;
    const { order, limit } = this.#readModifiers(outputs);
    const results = [...outputs, ...order, ...(having === undefined ? [] : [having])];
    const isGrouped =
      groups.length > 0 || having !== undefined || results.some(({ value }) => hasAggregate(value));
    const keys = new Set(groups.map(keyOf));
    const loose = isGrouped ? results.find(({ value }) => !isCovered(value, keys)) : undefined;
    if (loose !== undefined)
      throw this.#tree.refuse(
        'a value that is neither in group by nor in an aggregate is not supported',
        loose.node,
      );
    return {
      ...{ kind: this.#kind, required: this.#required, patterns: this.#values.patterns },
      ...{ where: where?.value, outputs, having: having?.value, order, limit },
      groups: isGrouped ? groups : undefined,
    };
  }

  /** The table, then the objects of its metadata that are joined with it. */
  #readFrom(node: TreeNode, isRequired = true): void {
    const type = toText(node['type']);
    if (type === 'JOIN') {
      this.#tree.only(node, 'left right condition join_type ref_type');
      const [left, right, condition] = [
        toNode(node['left']),
        toNode(node['right']),
        toNode(node['condition']),
      ];
      const isLeft = node['join_type'] === 'LEFT';
      const isKnown =
        (isLeft || node['join_type'] === 'INNER') && /^(CROSS|REGULAR)$/.test(toText(node['ref_type']));
      if (!isKnown || (isLeft && right['type'] === 'JOIN'))
        throw this.#tree.refuse('a join other than cross join and left join is not supported', node);
      this.#readFrom(left, isRequired);
      if (isGiven(condition) && keyOf(this.#values.read(condition)) !== keyOf(TRUE))
        throw this.#tree.refuse('a join condition other than true is not supported', condition);
      this.#readFrom(right, !isLeft);
    } else if (type === 'SUBQUERY')
      throw this.#tree.refuseWord('subqueries are not supported', /^select$/i, 1);
    else if (this.#tables.size > 0) this.#readUnnest(node, isRequired);
    else if (type === 'BASE_TABLE') this.#readTable(node);
    else throw this.#tree.refuse('a query without a table is not supported', node);
  }

  #readTable(node: TreeNode): void {
    this.#tree.only(node, 'table_name schema_name catalog_name');
    const name = ['catalog_name', 'schema_name', 'table_name']
      .map(key => toText(node[key]))
      .filter(Boolean)
      .join('.');
    if (!TABLES.has(name.toLowerCase()))
      throw this.#tree.refuse(
        `the table ${short(name)} is not supported; ${suggest(short(name), [...TABLES.keys()], 'tables')}`,
        node,
      );
    this.#kind = TABLES.get(name.toLowerCase());
    for (const each of [name, toText(node['alias'])]) if (each !== '') this.#tables.add(each.toLowerCase());
  }

  #readUnnest(node: TreeNode, isRequired: boolean): void {
    const call = toNode(node['function']);
    const [argument = {}, ...others] = toNodes(call['children']);
    if (
      node['type'] !== 'TABLE_FUNCTION' ||
      toText(call['function_name']).toLowerCase() !== 'unnest' ||
      others.length > 0
    )
      throw this.#tree.refuse('a join with anything but unnest is not supported', node);
    this.#tree.only(node, 'function');
    this.#tree.only(call, 'function_name children');
    const value = this.#values.read(argument);
    const path = 'paths' in value && value.paths.length === 1 ? value.paths[0] : undefined;
    if (path === undefined)
      throw this.#tree.refuse('unnest of anything but metadata or a field of it is not supported', argument);
    const alias = toText(node['alias']).toLowerCase() || `unnest ${this.#objects.size}`;
    this.#objects.delete(alias); // the last one with this name counts
    this.#objects.set(alias, path);
    const isKnown = path.length === 0 || this.#required.some(each => isDeepStrictEqual(each, path));
    if (isRequired && !isKnown) this.#required.push(path);
  }

  #readCondition(clause: string): { readonly value: Value; readonly node: TreeNode } | undefined {
    const node = toNode(this.#select[clause]);
    return isGiven(node) ? { value: this.#values.readAs('boolean', node), node } : undefined;
  }

  #readGroups(outputs: Query['outputs']): Value[] {
    return toNodes(this.#select['group_expressions']).map(node => {
      const value = this.#readItem(node, outputs);
      if (hasAggregate(value)) throw this.#tree.refuse('an aggregate in group by is not supported', node);
      return value;
    });
  }

  #isDistinct(): boolean {
    return toNodes(this.#select['modifiers']).some(({ type }) => type === 'DISTINCT_MODIFIER');
  }

  /** `select distinct` is the same as a group by of all columns. */
  #groupByAll(outputs: readonly { readonly value: Value; readonly node: TreeNode }[]): Value[] {
    const modifiers = toNodes(this.#select['modifiers']);
    const isPlain =
      !modifiers.some(each => isGiven(each['distinct_on_targets'])) &&
      !isGiven(this.#select['group_expressions']) &&
      !outputs.some(({ value }) => hasAggregate(value));
    if (!isPlain)
      throw this.#tree.refuseWord(
        'distinct with on, group by or an aggregate is not supported',
        /^distinct$/i,
      );
    return outputs.map(({ value, node }) => this.#values.count(this.#values.use(value, node), node));
  }

  #readModifiers(outputs: Query['outputs']) {
    const order: { value: Value; descending: boolean; node: TreeNode }[] = [];
    const keys = new Set<string>();
    let limit: number | undefined;
    for (const modifier of toNodes(this.#select['modifiers'])) {
      const type = toText(modifier['type']);
      if (type === 'DISTINCT_MODIFIER') continue;
      if (type !== 'ORDER_MODIFIER' && type !== 'LIMIT_MODIFIER')
        throw this.#tree.refuseWord('this kind of limit is not supported', /^limit$/i);
      this.#tree.only(modifier, 'orders limit');
      for (const each of toNodes(modifier['orders'])) {
        this.#tree.only(each, 'expression');
        const node = toNode(each['expression']);
        const value = this.#readItem(node, outputs);
        if (!keys.has(keyOf(value))) order.push({ value, descending: each['type'] === 'DESCENDING', node });
        keys.add(keyOf(value));
      }
      if (type === 'LIMIT_MODIFIER') limit = this.#readLimit(toNode(modifier['limit']));
    }
    return { order, limit };
  }

  #readLimit(node: TreeNode): number {
    const limit = this.#tree.wholeNumberOf(node);
    if (limit === undefined)
      throw this.#tree.refuse('a limit other than a whole number is not supported', node);
    return limit;
  }

  /** An item of group by or order by. An alias hides a column only if it is the whole item. */
  #readItem(node: TreeNode, outputs: Query['outputs']): Value {
    const names = node['class'] === 'COLUMN_REF' ? toNames(node) : [];
    const named = names.length === 1 ? this.#outputs.get(`${names[0]}`.toLowerCase()) : undefined;
    const output = this.#findByNumber(node, outputs) ?? named;
    return output === undefined
      ? this.#values.read(node)
      : this.#values.count(this.#values.use(output, node), node);
  }

  /** `group by 1` and `order by 1` name an output column. */
  #findByNumber(node: TreeNode, outputs: Query['outputs']): Value | undefined {
    const number = this.#tree.wholeNumberOf(node);
    if (number === undefined) return undefined;
    const output = outputs[number - 1];
    if (output === undefined)
      throw this.#tree.refuse(`a column ${number} is not supported: the query has ${outputs.length}`, node);
    return output.value;
  }

  #resolve(names: readonly string[], node: TreeNode): Value {
    const [first = '', ...rest] = names;
    const lower = first.toLowerCase();
    const output = rest.length === 0 ? this.#outputs.get(lower) : undefined;
    if (output !== undefined && this.#isHaving) return output;
    const object = this.#objects.get(lower);
    if (object !== undefined) return this.#field([[...object, ...rest]], node);
    const [name = '', ...keys] = this.#tables.has(lower) ? rest : names;
    const column = COLUMNS.get(name.toLowerCase());
    if (column !== undefined && 'paths' in column) return this.#field([keys], node);
    if (column !== undefined && keys.length === 0) return column;
    if (output !== undefined) return output;
    if (names.length === 1 && this.#outputs.size === 0 && this.#aliases.has(lower))
      throw this.#tree.refuse(
        `the alias ${short(first)} in where or in another column is not supported; repeat its expression`,
        node,
      );
    // A field without its alias. The object that was joined last is the most specific one.
    const paths = [...this.#objects.values()].reverse().map(path => [...path, ...names]);
    if (paths.length > 0 && names.length === 1) return this.#field(paths, node);
    const hint =
      paths.length > 0
        ? suggest(short(first), [...this.#tables, ...this.#objects.keys()], 'tables and objects')
        : `columns: ${[...COLUMNS.keys()].join(', ')}; fields of the metadata need a join with unnest(metadata)`;
    throw this.#tree.refuse(`the name ${short(names.join('.'))} is not supported; ${hint}`, node);
  }

  #field(paths: readonly Path[], node: TreeNode): Value {
    if (paths.some(path => path.length > MAX_PATH_KEYS))
      throw this.#tree.refuse(`a path of more than ${MAX_PATH_KEYS} keys is not supported`, node);
    return { paths, type: 'json' };
  }
}

/** The last parts of all names in an expression, in lower case. */
function listLastNames(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const own = toNames(node as TreeNode).at(-1);
  return [...(own === undefined ? [] : [own.toLowerCase()]), ...Object.values(node).flatMap(listLastNames)];
}

/** Whether a value is the same for all records of a group. */
function isCovered(value: Value, keys: ReadonlySet<string>): boolean {
  if (keys.has(keyOf(value)) || isAggregate(value) || 'bound' in value) return true;
  return 'operation' in value && value.args.every(each => isCovered(each, keys));
}
