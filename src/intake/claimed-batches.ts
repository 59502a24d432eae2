// The batches of one request, one per log kind. Each batch with accepted records has its own entry in the idempotency index and
// its own block in the spool. If a crash leaves only some of the blocks, a retry therefore stores exactly the missing ones.
import {
  type IdempotencyIndex,
  type IndexEntry,
  type IntakeResult,
  identifyRequest,
  type RequestOrigin,
} from './idempotency-index.ts';
import { MAX_ERRORS, type ParsedBatch, type ParsedBody } from './parse-body.ts';

export interface ClaimedBatch extends ParsedBatch {
  /** The result of this request or, for a repeat, of the first one. */
  readonly result: IntakeResult;
  /**
   * Undefined if the kind is unknown, or if no record was accepted and there is no Idempotency-Key: a retry then cannot store
   * anything twice.
   */
  readonly entry: IndexEntry | undefined;
  readonly isRepeat: boolean;
}

/**
 * Claims an entry for each batch that needs one. The caller must then call `complete`, `reportDelivery` or `release` for each
 * entry, as `IdempotencyIndex.claim` says. Like `claim`, waits while an equal request is in flight, and throws
 * `idempotency_conflict`.
 */
export async function claimBatches(
  index: IdempotencyIndex,
  request: RequestOrigin,
  { batches, digest, allHaveIdentity }: ParsedBody,
  nowMicros: number,
): Promise<ClaimedBatch[]> {
  const claimed: { batch: ParsedBatch; entry: IndexEntry | undefined }[] = [];
  try {
    // Batches are in the order of LOG_KINDS, so all requests claim in the same order, and no two wait for each other (deadlock).
    for (const batch of batches) {
      const { kind, accepted } = batch;
      const identity = kind && identifyRequest(request, kind, { digest, allHaveIdentity, accepted });
      claimed.push({ batch, entry: identity && (await index.claim(identity, nowMicros)) });
    }
  } catch (error) {
    release(index, claimed);
    throw error;
  }
  // A batch without an entry, such as one of an unknown kind, is a repeat if another batch of the same request is a repeat.
  const hasRepeat = claimed.some(({ entry }) => entry?.result !== undefined);
  return claimed.map(({ batch, entry }) => ({
    ...batch,
    result: entry?.result ?? resultOf(batch),
    entry,
    isRepeat: entry === undefined ? hasRepeat : entry.result !== undefined,
  }));
}

/** Call it if the request failed. A retry then counts as a new request, except for the batches that are repeats. */
export function release(
  index: IdempotencyIndex,
  claimed: readonly { readonly entry: IndexEntry | undefined }[],
): void {
  for (const { entry } of claimed) if (entry !== undefined) index.release(entry);
}

function resultOf({ accepted, rejectedByCode, errors }: ParsedBatch): IntakeResult {
  const rejected = Object.values(rejectedByCode).reduce((sum, count) => sum + count, 0);
  return { accepted, rejected, errors };
}

/** The result of the whole request. */
export function mergeResults(results: readonly IntakeResult[]): IntakeResult {
  const [first] = results;
  if (results.length === 1 && first !== undefined) return first;
  return {
    accepted: results.reduce((sum, { accepted }) => sum + accepted, 0),
    rejected: results.reduce((sum, { rejected }) => sum + rejected, 0),
    errors: results
      .flatMap(({ errors }) => errors)
      .sort((a, b) => a.index - b.index)
      .slice(0, MAX_ERRORS),
  };
}
