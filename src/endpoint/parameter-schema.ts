// The JSON Schema of a parameter, for OpenAPI and for tools.
import type { CatalogParameter } from './catalog-entry.ts';
import { MAX_VALUE_LENGTH } from './parameters.ts';

export function parameterSchema({ type, choices = [], fallback }: CatalogParameter): Record<string, unknown> {
  switch (type) {
    case 'pattern':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH, format: 'regex' };
    case 'timestamp':
      return {
        type: 'string',
        description: 'RFC 3339 date-time or date; UTC unless it has an offset.',
      };
    case 'choice':
      // With a fallback every value is valid, so the schema can only give examples.
      return fallback === undefined || fallback === null
        ? { type: 'string', enum: choices }
        : { type: 'string', examples: choices, default: fallback };
    default:
      return { type: 'string', maxLength: MAX_VALUE_LENGTH };
  }
}
