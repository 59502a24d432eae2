// Removes records from the parts: each part that has some is replaced by a copy without them, which frees their space. A DELETE
// would free only the space of empty row groups. If the process is killed, each part has all of these records or none.
// A part from which retention has deleted records is replaced, too: the file still has the content of the deleted records.
import { type Condition, copyInOrder } from './copy-records.ts';
import type { DuckDBConnection } from './driver.ts';
import type { PartRewriter, Rewrite } from './part-rewriter.ts';
import { nameOf, type Part } from './parts.ts';

/**
 * Removes the matching records from all parts that exist now, except from unverified ones. Returns how many. Must be called
 * within `PartRewriter.runAlone`.
 */
export async function removeRecords(
  rewriter: PartRewriter,
  connection: DuckDBConnection,
  condition: Condition,
): Promise<number> {
  let removed = 0;
  const planRewrite = async (part: Part): Promise<Rewrite | undefined> => {
    if (part.unverified !== undefined) return undefined; // it may have to be rewritten from the spool (flush-verification.ts)
    const result = await connection.runAndReadAll(
      `select count(*), (select estimated_size from duckdb_tables() where 'logs.' || table_name = '${nameOf(part)}')
      from ${nameOf(part)} where ${condition.sql}`,
      { ...condition.values },
    );
    // `estimated_size` also counts the rows that retention has deleted.
    const [matching, rowsInFile] = [Number(result.value(0, 0)), Number(result.value(1, 0))];
    if (matching === 0 && rowsInFile === part.rows) return undefined;
    return {
      sources: [part],
      isCompacted: part.isCompacted,
      except: condition,
      keptRows: part.rows - matching,
      copy: (writer, to, afterBatch) => copyInOrder(writer, nameOf(part), to, afterBatch, condition),
      onReplaced: async () => {
        removed += matching;
      },
    };
  };
  await rewriter.rewriteAll(planRewrite);
  return removed;
}
