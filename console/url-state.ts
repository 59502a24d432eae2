// The state of the page, stored in the URL's query string: project, view and the settings of the view. A link therefore
// reproduces the page. The URL never contains the token.

export interface UrlState {
  readonly view: string;
  readonly project: string;
  /** Settings of the view, such as an interval. */
  readonly settings: Readonly<Record<string, string>>;
}

export function parseUrlState(search: string): UrlState {
  const { view = '', project = '', ...settings } = Object.fromEntries(new URLSearchParams(search));
  return { view, project, settings: upgrade(settings) };
}

const OLD_INTERVALS: Readonly<Record<string, string>> = { minutely: '1hr', hourly: '1hr', daily: '7day' };

/** Links of earlier versions have an interval and a zoom instead of a time range. */
function upgrade({ interval = '', zoom = '', ...settings }: Record<string, string>): UrlState['settings'] {
  const [start = '', end = ''] = zoom.split('/');
  if (end !== '') return { ...settings, range: 'custom', start, end };
  return interval === '' ? settings : { range: OLD_INTERVALS[interval] ?? interval, ...settings };
}

export function toSearch({ view, project, settings }: UrlState): string {
  const entries = Object.entries({ view, project, ...settings }).filter(([, value]) => value !== '');
  return `?${new URLSearchParams(entries)}`;
}
