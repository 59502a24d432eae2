// Which compression an answer takes, by the header Accept-Encoding (RFC 9110, section 12.5.3).
import { COMPRESSIONS, type ContentCoding } from '../endpoint/endpoint-result.ts';
import { parseWeighted } from './weighted-list.ts';

export function chooseCoding(acceptEncoding: string | undefined): ContentCoding {
  if (acceptEncoding === undefined || acceptEncoding === '') return 'identity';
  const weights = parseWeighted(acceptEncoding);
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0;
  const identity = weights.get('identity') ?? 0;
  let best: { coding: ContentCoding; weight: number } = { coding: 'identity', weight: identity };
  for (const coding of COMPRESSIONS)
    if (weightOf(coding) > 0 && weightOf(coding) > best.weight) best = { coding, weight: weightOf(coding) };
  return best.coding;
}
