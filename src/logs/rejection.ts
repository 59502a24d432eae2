// Why a record is rejected: a code for programs (a closed list) and a message for people.

/** The codes of records that intake rejects. */
export const INTAKE_REJECT_CODES = [
  'invalid_json',
  'not_an_object',
  'too_deep',
  'too_large',
  'no_project',
  'invalid_project',
  'project_not_allowed',
  'invalid_function_id',
  'unknown_source',
  'kind_not_allowed',
  'empty_record',
  'invalid_timestamp',
  'in_the_future',
  'past_retention',
] as const;

/** `rejected_by_store`: the store rejected a record that passed the rules. Only quarantine lines have this code. */
export type RejectCode = (typeof INTAKE_REJECT_CODES)[number] | 'rejected_by_store';

export interface Rejection {
  readonly code: RejectCode;
  /** One or more sentences: what is wrong and what is allowed. */
  readonly message: string;
}

/** Quotes text from a sender, cut to 40 characters: enough to find the text, but not a whole record. */
export function quote(text: string): string {
  const maxLength = 40;
  const shortened = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  // Cutting can split a surrogate pair. JSON.stringify escapes control characters, so the message stays on one line.
  return JSON.stringify(shortened.toWellFormed());
}
