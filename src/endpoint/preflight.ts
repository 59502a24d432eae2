// Preflight: checks that the store has its tables and permissions, and that it accepts the SQL of every endpoint.
import { OperatorError } from '../domain/errors.ts';
import type { Store } from '../store/store.ts';
import { type Catalog, checkCatalog } from './catalog.ts';

/**
 * Throws an OperatorError for a problem that the operator has to fix. If the store is unreachable or too slow, throws the same
 * errors as Store.query.
 */
export async function runPreflight(catalog: Catalog, store: Store): Promise<void> {
  const missing = await store.preflight();
  if (missing !== undefined) throw new OperatorError(missing);
  await checkCatalog(catalog, store);
}
