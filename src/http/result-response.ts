// The answer to a query on the wire.
import { type AnswerFormat, encodeRows } from '../endpoint/encode.ts';
import type { Column, QueryResult } from '../store/store.ts';
import { CONTENT_TYPES } from './answer-format.ts';
import type { Reply } from './reply.ts';

export function resultReply(columns: readonly Column[], result: QueryResult, format: AnswerFormat): Reply {
  const headers: Record<string, string> = {
    'Content-Type': CONTENT_TYPES[format],
    'Cache-Control': 'no-store',
    Vary: 'X-API-KEY, Authorization, Accept',
  };
  if (result.cut) headers['Dendro-Clipped'] = 'row-limit';
  return { status: 200, headers, body: encodeRows(columns, result.rows, format) };
}
