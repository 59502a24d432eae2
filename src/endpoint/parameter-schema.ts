// The JSON Schema of an endpoint's parameter, for OpenAPI and for the tools of `dendro mcp`.
import type { CatalogParameter } from './catalog-entry.ts';
import { MAX_VALUE_LENGTH } from './parameters.ts';

export function parameterSchema(parameter: CatalogParameter): Record<string, unknown> {
  const { type, choices = [], fallback, min, max } = parameter;
  const defaultValue = parameter.default === undefined ? {} : { default: parameter.default };
  switch (type) {
    case 'pattern':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH, format: 'regex' };
    case 'timestamp':
      return {
        type: parameter.accepts_microseconds ? ['string', 'integer'] : 'string',
        description: `RFC 3339 date-time or date; UTC unless it has an offset.${parameter.accepts_microseconds ? ' Or whole Unix microseconds.' : ''}`,
      };
    case 'choice':
      // With a fallback every value is valid, so the schema can only give examples.
      return fallback === undefined || fallback === null
        ? { type: 'string', enum: choices, ...defaultValue }
        : { type: 'string', examples: choices, default: fallback };
    case 'integer':
      return { type: 'integer', minimum: min, maximum: max, ...defaultValue };
    case 'boolean':
      return { type: 'boolean', ...defaultValue };
    case 'search':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH, examples: ['timeout -retry status:5xx'] };
    default:
      return { type: 'string', maxLength: MAX_VALUE_LENGTH };
  }
}
