// What a view shows while no project is chosen: the projects to choose from, or how to send the first log record if the store is
// empty. If there is only one project, as with a token that is pinned to it, it is opened at once.
import type { Endpoint } from '../api/catalog.ts';
import { ApiError } from '../api/client.ts';
import { createStoreHelp } from '../components/first-log.ts';
import { h, replaceChildren } from '../dom.ts';
import {
  type ActiveProject,
  canListProjects,
  describeProject,
  fetchProjects,
  readRecentProjects,
} from '../projects.ts';
import type { ViewContext } from './view.ts';

export interface ProjectPromptOptions {
  readonly catalog: readonly Endpoint[];
  readonly linkToProject: ViewContext['linkToProject'];
  /** Opens the project with `history.replaceState`, so that Back does not return to the prompt. */
  replaceWithProject(project: string): void;
  onUnauthorized(error: ApiError): void;
}

export function createProjectPrompt(options: ProjectPromptOptions): HTMLElement {
  const host = h('div', { class: 'message' });
  const recent = readRecentProjects();
  if (canListProjects(options.catalog)) {
    replaceChildren(host, h('h2', {}, 'Choose a project'), h('p', { role: 'status' }, 'Loading projects…'));
    void loadProjects(host, recent, options);
  } else replaceChildren(host, ...createTextPrompt(recent, options), createPackNote());
  return host;
}

const POLL_SECONDS = 3;

/** Polls while the store is empty, because the page promises that the first record appears. Retries if the server asks for it. */
async function loadProjects(
  host: HTMLElement,
  recent: readonly string[],
  options: ProjectPromptOptions,
  isHelpShown = false,
): Promise<void> {
  const loadLater = (seconds: number, isHelpShownThen: boolean) =>
    setTimeout(() => {
      if (host.isConnected) void loadProjects(host, recent, options, isHelpShownThen);
    }, seconds * 1000);
  try {
    const projects = await fetchProjects();
    const [only] = projects;
    if (!host.isConnected) return;
    if (projects.length === 1 && only !== undefined) options.replaceWithProject(only.project);
    else if (projects.length === 0) {
      if (!isHelpShown) replaceChildren(host, ...createStoreHelp('edge', ''));
      loadLater(POLL_SECONDS, true);
    } else replaceChildren(host, ...createList(projects, options));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 'unauthorized') options.onUnauthorized(error);
    else if (isHelpShown) loadLater(POLL_SECONDS, true);
    else {
      replaceChildren(host, ...createTextPrompt(recent, options), createErrorNote(error));
      if (error.retryAfterSeconds !== undefined) loadLater(Math.max(error.retryAfterSeconds, 1), false);
    }
  }
}

function createErrorNote({ message, retryAfterSeconds }: ApiError): HTMLElement {
  const retry = retryAfterSeconds === undefined ? '' : ' · Retrying automatically.';
  return h('p', { role: 'alert' }, `The list of projects failed: ${message}${retry}`);
}

function createList(projects: readonly ActiveProject[], options: ProjectPromptOptions): HTMLElement[] {
  return [
    h('h2', {}, 'Choose a project'),
    h(
      'p',
      {},
      'These projects have records that your token can read. Enter a reference above for any other.',
    ),
    h(
      'ul',
      { class: 'project-list' },
      ...projects.map(each => createLink(each.project, describeProject(each), options)),
    ),
  ];
}

function createTextPrompt(recent: readonly string[], options: ProjectPromptOptions): HTMLElement[] {
  const links = recent.map(project => createLink(project, '', options));
  return [
    h('h2', {}, 'Choose a project'),
    h(
      'p',
      {},
      'Enter a project reference above. It becomes part of this page’s URL, so you can bookmark the page.',
    ),
    ...(links.length === 0
      ? []
      : [h('p', {}, 'Recent projects:'), h('ul', { class: 'project-list' }, ...links)]),
  ];
}

function createPackNote(): HTMLElement {
  return h(
    'p',
    { class: 'muted' },
    'The projects with records are listed here, unless the token may not call projects.active or the server runs with ',
    h('code', {}, '--packs none'),
    '.',
  );
}

function createLink(project: string, detail: string, options: ProjectPromptOptions): HTMLElement {
  return h('li', {}, options.linkToProject(project), h('small', {}, detail));
}
