// Why a record is not taken: a closed list of codes for machines, a sentence for a person.

export type RejectCode =
  | 'invalid_json'
  | 'not_an_object'
  | 'too_deep'
  | 'too_large'
  | 'no_project'
  | 'project_not_allowed'
  | 'empty_record'
  | 'invalid_timestamp'
  | 'in_the_future'
  | 'past_retention'
  /** By the store, for something that the rules let pass. */
  | 'refused_by_store';

export interface Rejection {
  readonly code: RejectCode;
  /** What was wrong and what is allowed. */
  readonly message: string;
}

/** Quotes what a sender wrote, cut short: a message shows where to look, it does not carry the record. */
export function quote(text: string): string {
  const longest = 40;
  const shown = text.length > longest ? `${text.slice(0, longest)}…` : text;
  // Cutting can split a surrogate pair; stringify escapes control characters, so the message stays one line.
  return JSON.stringify(shown.toWellFormed());
}
