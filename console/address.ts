// Where the visitor is: project, view and the view's own settings, all in the URL's query, so that a link shows the
// same. The token is never part of it.

export interface Place {
  readonly view: string;
  readonly project: string;
  /** What the view adds, such as an interval. Only what differs from the view's default stands here. */
  readonly settings: Readonly<Record<string, string>>;
}

export function readPlace(search: string): Place {
  const { view = '', project = '', ...settings } = Object.fromEntries(new URLSearchParams(search));
  return { view, project, settings };
}

export function toSearch({ view, project, settings }: Place): string {
  const entries = Object.entries({ view, project, ...settings }).filter(([, value]) => value !== '');
  return `?${new URLSearchParams(entries)}`;
}
