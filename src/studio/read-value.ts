// Reads expressions of the parse tree as values: knows all functions and operators, and adds the conversions that the types of values
// need. Everything else is refused.
import {
  MAX_STUDIO_CASE_CHANGES,
  MAX_STUDIO_DEPTH,
  MAX_STUDIO_FIELDS,
  MAX_STUDIO_PARTS,
  MAX_STUDIO_PATTERNS,
} from '../domain/limits.ts';
import { parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import { escapePattern } from '../store/condition-sql.ts';
import type { Operation } from './operations.ts';
import type { TreeNode } from './parse-sql.ts';
import { AGGREGATES, hasAggregate, type Query, sizeOf, type Type, type Value } from './query.ts';
import { isGiven, nameOfKey, short, type TreeReader, toNames, toNode, toNodes, toText } from './tree.ts';

const COMPARISONS = new Map<string, Operation>([
  ['COMPARE_EQUAL', '='],
  ['COMPARE_NOTEQUAL', '!='],
  ['COMPARE_LESSTHAN', '<'],
  ['COMPARE_LESSTHANOREQUALTO', '<='],
  ['COMPARE_GREATERTHAN', '>'],
  ['COMPARE_GREATERTHANOREQUALTO', '>='],
]);

/** Functions, and how many arguments they have. The parser replaces coalesce, ifnull, if and casts by nodes of their own. */
const FUNCTIONS = new Map<string, number>([
  ...['regexp_contains', 'starts_with', 'timestamp_trunc', 'json_value', '~~', '!~~'].map(
    each => [each, 2] as const,
  ),
  ...['lower', 'upper', 'timestamp', '-', 'count', 'countif', 'sum', 'avg', 'min', 'max'].map(
    each => [each, 1] as const,
  ),
  ['count_star', 0],
]);

/** What the parser replaces by functions and comparisons of DuckDB. */
const WRITTEN_AS = new Map([
  ['~~*', 'ilike'],
  ['!~~*', 'not ilike'],
  ['like_escape', 'like with escape'],
  ['not_like_escape', 'like with escape'],
  ['regexp_full_match', 'similar to'],
  ['date_part', 'extract'],
  ...['to_days', 'to_hours', 'to_minutes', 'to_seconds', 'to_months', 'to_years', 'to_weeks'].map(
    each => [each, 'interval'] as const,
  ),
  ['COMPARE_DISTINCT_FROM', 'is not true, is not false or is distinct from'],
  ['COMPARE_NOT_DISTINCT_FROM', 'is true, is false or is not distinct from'],
]);

const FUNCTION_NAMES = [
  ...[...FUNCTIONS.keys()].filter(name => /^[a-z]+(_[a-z]+)?$/.test(name) && name !== 'count_star'),
  ...['coalesce', 'ifnull', 'if', 'cast', 'safe_cast'],
].join(', ');

/** Functions and operations that can read a whole message or value. */
const SEARCHES = ['regexp_contains', '~~', '!~~', 'matches', 'contains', 'lower', 'upper'];

const TRUNCATE_SECONDS = new Map([
  ['second', 1],
  ['minute', 60],
  ['hour', 3600],
  ['day', 86_400],
]);

/** By the type in the tree or, if DuckDB does not know it, by its name. */
const CASTS = new Map<string, 'text' | 'integer' | 'number' | 'timestamp' | 'datetime'>([
  ['VARCHAR', 'text'],
  ['BIGINT', 'integer'],
  ['INTEGER', 'integer'],
  ['DOUBLE', 'number'],
  ['float64', 'number'],
  ['TIMESTAMP', 'timestamp'],
  ['datetime type', 'datetime'],
]);

const TYPE_NAMES: Readonly<Record<Type, string>> = {
  ...{ text: 'a text', number: 'a number', integer: 'a number', boolean: 'a condition' },
  ...{ timestamp: 'a timestamp', datetime: 'a timestamp', json: 'a field', null: 'null' },
};

export const TRUE: Value = { operation: 'true', args: [], type: 'boolean' };
const FALSE: Value = { operation: 'false', args: [], type: 'boolean' };
const NULL: Value = { operation: 'null', args: [], type: 'null' };

/** Finds the column or field of a name. */
export type Resolve = (names: readonly string[], node: TreeNode) => Value;

export class ValueReader {
  /** The regular expressions so far. */
  readonly patterns: Query['patterns'][number][] = [];
  readonly #tree: TreeReader;
  readonly #resolve: Resolve;
  #depth = 0;
  #parts = 0;
  #fields = 0;
  #searches = 0;
  #caseChanges = 0;

  constructor(tree: TreeReader, resolve: Resolve) {
    this.#tree = tree;
    this.#resolve = resolve;
  }

  read(node: TreeNode): Value {
    if (++this.#depth > MAX_STUDIO_DEPTH)
      throw this.#tree.refuse(`more than ${MAX_STUDIO_DEPTH} nested expressions are not supported`, node);
    const value = this.#readNode(node);
    this.#depth--;
    return this.count(value, node);
  }

  /** Counts what the clauses of the query have. Values share parts, so a short text can have billions of values. */
  count(value: Value, node: TreeNode): Value {
    const parts = this.#parts + sizeOf(value);
    if (parts > MAX_STUDIO_PARTS)
      throw this.#tree.refuse(`more than ${MAX_STUDIO_PARTS} values and operations are not supported`, node);
    if (this.#depth === 0) this.#parts = parts;
    return value;
  }

  /** The value of a name or of an output number. Its fields and searches count for each use. */
  use(value: Value, node: TreeNode): Value {
    if ('paths' in value) this.#fields += value.paths.length;
    if (this.#fields > MAX_STUDIO_FIELDS)
      throw this.#tree.refuse(`more than ${MAX_STUDIO_FIELDS} uses of fields are not supported`, node);
    if ('operation' in value) {
      if (SEARCHES.includes(value.operation)) this.#addSearch(value.operation, node);
      for (const arg of value.args) this.use(arg, node);
    }
    return value;
  }

  #addSearch(name: string, node: TreeNode): void {
    if (/^(lower|upper)$/.test(name) && ++this.#caseChanges > MAX_STUDIO_CASE_CHANGES)
      throw this.#tree.refuse(
        `more than ${MAX_STUDIO_CASE_CHANGES} uses of lower and upper are not supported`,
        node,
      );
    if (++this.#searches > MAX_STUDIO_PATTERNS)
      throw this.#tree.refuse(
        `more than ${MAX_STUDIO_PATTERNS} uses of patterns, lower and upper are not supported`,
        node,
      );
  }

  #readNode(node: TreeNode): Value {
    const type = toText(node['type']);
    const children = toNodes(node['children']);
    switch (node['class']) {
      case 'COLUMN_REF':
        return this.use(this.#resolve(toNames(node), node), node);
      case 'CONSTANT': {
        const literal = this.#tree.literalOf(node);
        if (literal === undefined) return NULL;
        return 'text' in literal ? text(literal.text) : number(literal.number);
      }
      case 'CAST':
        return this.#readCast(node);
      case 'CONJUNCTION': {
        const args = children.map(each => this.readAs('boolean', each));
        return condition(type === 'CONJUNCTION_AND' ? 'and' : 'or', ...args);
      }
      case 'COMPARISON': {
        const operation = COMPARISONS.get(type);
        if (operation === undefined)
          throw this.#tree.refuse(`${WRITTEN_AS.get(type) ?? nameOfKey(type)} is not supported`, node);
        return this.#compare(
          operation,
          this.read(toNode(node['left'])),
          this.read(toNode(node['right'])),
          node,
        );
      }
      case 'BETWEEN': {
        const [input = NULL, lower = NULL, upper = NULL] = ['input', 'lower', 'upper'].map(key =>
          this.read(toNode(node[key])),
        );
        const [value = NULL, low = NULL] = this.#unify([input, lower], node, 'text');
        const [other = NULL, high = NULL] = this.#unify([input, upper], node, 'text');
        if (value.type === other.type) return condition('between', value, low, high);
        return condition('and', condition('>=', value, low), condition('<=', other, high));
      }
      case 'CASE': {
        const checks = toNodes(node['case_checks']);
        const whens = checks.map(check => this.readAs('boolean', toNode(check['when_expr'])));
        const thens = [...checks.map(check => toNode(check['then_expr'])), toNode(node['else_expr'])];
        const values = this.#unify(
          thens.map(each => this.read(each)),
          node,
        );
        const args = values.flatMap((value, index) => [...whens.slice(index, index + 1), value]);
        return { operation: 'case', args, type: values[0]?.type ?? 'null' };
      }
      case 'OPERATOR':
        return this.#readOperator(type, children, node);
      case 'FUNCTION':
        return this.#readFunction(toText(node['function_name']).toLowerCase(), children, node);
      case 'SUBQUERY':
        throw this.#tree.refuse('subqueries are not supported', node);
      case 'WINDOW':
        throw this.#tree.refuse('window functions are not supported', node);
      case 'STAR':
        throw this.#tree.refuse('* is not supported; name the columns', node);
    }
    throw this.#tree.refuse(`${nameOfKey(type)} is not supported`, node);
  }

  #readOperator(type: string, children: readonly TreeNode[], node: TreeNode): Value {
    const [first = {}, ...others] = children;
    switch (type) {
      case 'OPERATOR_NOT':
        return condition('not', this.readAs('boolean', first));
      case 'OPERATOR_IS_NULL':
        return condition('is null', this.read(first));
      case 'OPERATOR_IS_NOT_NULL':
        return condition('not', condition('is null', this.read(first)));
      case 'OPERATOR_COALESCE': {
        const args = this.#unify(
          children.map(each => this.read(each)),
          node,
        );
        return { operation: 'coalesce', args, type: args[0]?.type ?? 'null' };
      }
      case 'COMPARE_IN':
      case 'COMPARE_NOT_IN': {
        const isIn = this.#readIn(this.read(first), others, node);
        return type === 'COMPARE_IN' ? isIn : condition('not', isIn);
      }
    }
    throw this.#tree.refuse(`${nameOfKey(type)} is not supported`, node);
  }

  /** Literals of one type are compared all at once, so that a field is read once. */
  #readIn(value: Value, items: readonly TreeNode[], node: TreeNode): Value {
    const literals = new Map<Type, Value[]>();
    const others: Value[] = [];
    for (const item of items) {
      const [subject = NULL, other = NULL] = this.#unify([value, this.read(item)], node, 'text');
      if (!('bound' in other)) {
        others.push(condition('=', subject, other));
        continue;
      }
      const args = literals.get(other.type) ?? [subject];
      literals.set(other.type, args);
      args.push(other);
    }
    const isIn = [...literals.values()].map(args => condition('in', ...args));
    return condition('or', ...isIn, ...others);
  }

  #readFunction(name: string, children: readonly TreeNode[], node: TreeNode): Value {
    const [first = {}, second = {}] = children;
    const count = FUNCTIONS.get(name);
    const written = WRITTEN_AS.get(name);
    if (written !== undefined) throw this.#tree.refuse(`${written} is not supported`, node);
    if (node['is_operator'] === true && children.length !== count)
      throw this.#tree.refuse(`the operator ${short(name)} is not supported`, node);
    if (count === undefined)
      throw this.#tree.refuse(
        `the function ${short(name)} is not supported; functions: ${FUNCTION_NAMES}`,
        node,
      );
    this.#tree.only(node, 'function_name children distinct is_operator');
    if (children.length !== count)
      throw this.#tree.refuse(
        `${name} with ${children.length} arguments is not supported; it has ${count}`,
        node,
      );
    if (isGiven(node['distinct']) && name !== 'count')
      throw this.#tree.refuse('distinct in anything but count is not supported', node);
    if (SEARCHES.includes(name)) this.#addSearch(name, node);
    switch (name) {
      case '~~':
        return this.#readLike(first, second);
      case '!~~':
        return condition('not', this.#readLike(first, second));
      case 'regexp_contains':
        return this.#match(this.readAs('text', first), this.#tree.textOf(second, name), second);
      case 'starts_with':
        return condition('starts with', this.readAs('text', first), text(this.#tree.textOf(second, name)));
      case 'lower':
      case 'upper':
        return { operation: name, args: [this.readAs('text', first)], type: 'text' };
      case 'timestamp':
        return this.readAs('timestamp', first);
      case 'timestamp_trunc':
        return this.#readTruncate(this.readAs('timestamp', first), second);
      case 'json_value':
        return this.#readJsonValue(this.read(first), second);
      case '-': {
        const literal = this.#tree.literalOf(first);
        if (literal === undefined || !('number' in literal))
          throw this.#tree.refuse('the operator - is not supported', node);
        return number(`-${literal.number}`);
      }
      case 'count_star':
        return { operation: 'count', args: [], type: 'integer' };
      case 'countif': {
        const isCounted = this.readAs('boolean', first);
        if (hasAggregate(isCounted))
          throw this.#tree.refuse('an aggregate in an aggregate is not supported', first);
        const one: Value = {
          operation: 'case',
          args: [isCounted, TRUE, { ...NULL, type: 'boolean' }],
          type: 'boolean',
        };
        return { operation: 'count', args: [one], type: 'integer' };
      }
    }
    return this.#readAggregate(
      AGGREGATES.find(each => each === name) ?? 'count',
      first,
      isGiven(node['distinct']),
    );
  }

  #readAggregate(aggregate: (typeof AGGREGATES)[number], argument: TreeNode, isDistinct: boolean): Value {
    const value = this.read(argument);
    if (hasAggregate(value))
      throw this.#tree.refuse('an aggregate in an aggregate is not supported', argument);
    if (aggregate === 'count')
      return { operation: isDistinct ? 'count distinct' : 'count', args: [value], type: 'integer' };
    if (/^m/.test(aggregate) && value.type === 'json') {
      // That of the numbers, or else that of the texts.
      const of = (type: Type): Value => ({
        operation: aggregate,
        args: [this.#convert(value, type, argument)],
        type,
      });
      const args: Value[] = [
        { operation: 'number to text', args: [of('number')], type: 'json' },
        { operation: 'text to json', args: [of('text')], type: 'json' },
      ];
      return { operation: 'coalesce', args, type: 'json' };
    }
    const keepsType = /^m/.test(aggregate) && (value.type === 'text' || isTime(value));
    const arg = keepsType ? value : this.#convert(value, 'number', argument);
    return { operation: aggregate, args: [arg], type: arg.type };
  }

  #readTruncate(value: Value, unit: TreeNode): Value {
    const seconds = TRUNCATE_SECONDS.get(toNames(unit).join('.').toLowerCase());
    if (seconds === undefined)
      throw this.#tree.refuse(
        `timestamp_trunc with anything but ${[...TRUNCATE_SECONDS.keys()].join(', ')} is not supported`,
        unit,
      );
    const micros: Value = { bound: { type: 'integer', value: seconds * 1_000_000 }, type: 'integer' };
    return { operation: 'truncate', args: [value, micros], type: value.type };
  }

  #readJsonValue(value: Value, path: TreeNode): Value {
    const [, keys] = /^\$((?:\.[\w-]+)*)$/.exec(this.#tree.textOf(path, 'json_value')) ?? [];
    if (!('paths' in value) || keys === undefined)
      throw this.#tree.refuse(
        "json_value of anything but a field, with a path such as '$.request.method', is not supported",
        path,
      );
    const paths = value.paths.map(each => [...each, ...keys.split('.').slice(1)]);
    return { operation: 'scalar', args: [{ paths, type: 'json' }], type: 'text' };
  }

  /** Patterns without a wildcard inside are compared as text, which is faster than a regular expression. */
  #readLike(first: TreeNode, second: TreeNode): Value {
    const value = this.readAs('text', first);
    const pattern = this.#tree.textOf(second, 'like');
    const [, start = '', inner = '', end = ''] =
      /^(%*)((?:\\.|[^%\\]|%(?!%*$)|\\$)*)(%*)$/su.exec(pattern) ?? [];
    const unescaped = inner.replace(/\\(.)/gsu, '$1');
    if (!/[%_]/.test(inner.replace(/\\./gsu, ''))) {
      if (start !== '' && end !== '' && unescaped !== '')
        return condition('contains', value, text(unescaped));
      if (start === '' && end === '') return condition('=', value, text(unescaped));
      return condition(
        start === '' || unescaped === '' ? 'starts with' : 'ends with',
        value,
        text(unescaped),
      );
    }
    const source = inner.replace(/\\(.)|%+|./gsu, (part, escaped) =>
      part.startsWith('%') ? '.*' : part === '_' ? '.' : escapePattern(escaped ?? part),
    );
    return this.#match(value, `(?s)${start === '' ? '^' : ''}${source}${end === '' ? '$' : ''}`, second);
  }

  #match(value: Value, pattern: string, node: TreeNode): Value {
    this.patterns.push({ text: pattern, at: this.#tree.at(node) });
    return condition('matches', value, text(pattern));
  }

  #readCast(node: TreeNode): Value {
    const child = toNode(node['child']);
    const castType = toNode(node['cast_type']);
    const name = toText(toNode(castType['type_info'])['name']) || toText(castType['id']);
    // The parser writes true and false as casts of t and f. All literals of the query are indexes.
    const constant = toText(toNode(child['value'])['value']);
    if (name === 'BOOLEAN' && /^[tf]$/.test(constant)) return constant === 't' ? TRUE : FALSE;
    const type = CASTS.get(name);
    if (type === undefined)
      throw this.#tree.refuse(`a cast to ${short(name.toLowerCase())} is not supported`, node);
    const value = this.read(child);
    if (type === 'timestamp' || type === 'datetime')
      return { ...this.#convert(value, 'timestamp', node), type };
    if (type === 'text' && value.type === 'boolean')
      return { operation: 'boolean to text', args: [value], type };
    if (type === 'text' && isNumber(value)) return { operation: 'number to text', args: [value], type };
    if (type === 'text') return this.#convert(value, 'text', node);
    const converted: Value =
      value.type === 'text'
        ? { operation: 'to number', args: [value], type: 'number' }
        : this.#convert(value, 'number', node);
    return type === 'number' ? converted : { operation: 'round', args: [converted], type: 'number' };
  }

  readAs(type: Type, node: TreeNode): Value {
    return this.#convert(this.read(node), type, node);
  }

  #compare(operation: Operation, left: Value, right: Value, node: TreeNode): Value {
    return condition(operation, ...this.#unify([left, right], node, 'text'));
  }

  /** Converts the values to one type: that of a value whose type is known. Fields have the type of what they are compared with. */
  #unify(values: readonly Value[], node: TreeNode, ofFields: Type = 'json'): Value[] {
    const known = values.find(isTime) ?? values.find(({ type }) => type !== 'json' && type !== 'null');
    const type = known?.type ?? (values.some(value => value.type === 'json') ? ofFields : 'text');
    return values.map(value => this.#convert(value, type, node));
  }

  #convert(value: Value, type: Type, node: TreeNode): Value {
    const target: Pick<Value, 'type'> = { type };
    if (value.type === type || (isTime(value) && isTime(target)) || (isNumber(value) && isNumber(target)))
      return value;
    if (value.type === 'null') return { ...NULL, type };
    if (isTime(target) && value.type === 'text' && 'bound' in value) {
      const micros = parseTimestamp(String(value.bound.value).replace(/ UTC$/, 'Z'));
      if (micros === undefined)
        throw this.#tree.refuse(`the text is not a timestamp; allowed: ${TIMESTAMP_FORMS}`, node);
      return { bound: { type: 'timestamp', value: micros }, type: 'timestamp' };
    }
    if (value.type !== 'json' || isTime(target))
      throw this.#tree.refuse(
        `${TYPE_NAMES[value.type]} where ${TYPE_NAMES[type]} is needed is not supported`,
        node,
      );
    if (isNumber(target)) return { operation: 'to number', args: [value], type: 'number' };
    const scalar: Value = { operation: 'scalar', args: [value], type: 'text' };
    return type === 'text' ? scalar : condition('=', scalar, text('true'));
  }
}

function condition(operation: Operation, ...args: Value[]): Value {
  return { operation, args, type: 'boolean' };
}

function text(value: string): Value {
  return { bound: { type: 'text', value }, type: 'text' };
}

function number(decimal: string): Value {
  return { bound: { type: 'text', value: decimal }, type: 'number' };
}

function isTime({ type }: Pick<Value, 'type'>): boolean {
  return type === 'timestamp' || type === 'datetime';
}

function isNumber({ type }: Pick<Value, 'type'>): boolean {
  return type === 'number' || type === 'integer';
}
