// Everything that can be observed of a running program, as one union. log.ts reads it; metrics will too.
// No event carries a token or a parameter's value.

export type Event =
  | { readonly type: 'listening'; readonly listener: 'public' | 'internal'; readonly url: string }
  | { readonly type: 'stopping'; readonly signal: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'tokens_read'; readonly count: number }
  | { readonly type: 'tokens_unreadable'; readonly error: unknown }
  | { readonly type: 'request_failed'; readonly route: string; readonly error: unknown };

export type Observe = (event: Event) => void;
