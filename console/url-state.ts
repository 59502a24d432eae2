// The state of the page as the URL's query string: project, view and the settings of the view. A link therefore
// reproduces the page. The token is never part of it.

export interface UrlState {
  readonly view: string;
  readonly project: string;
  /** Settings of the view, such as an interval. */
  readonly settings: Readonly<Record<string, string>>;
}

export function parseUrlState(search: string): UrlState {
  const { view = '', project = '', ...settings } = Object.fromEntries(new URLSearchParams(search));
  return { view, project, settings };
}

export function toSearch({ view, project, settings }: UrlState): string {
  const entries = Object.entries({ view, project, ...settings }).filter(([, value]) => value !== '');
  return `?${new URLSearchParams(entries)}`;
}
