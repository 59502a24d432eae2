// The frame around every view: logo, project field, navigation, sign-out button and footer.
import { h, replaceChildren, setAttribute, setInvalid } from '../dom.ts';
import { timeZone } from '../format.ts';
import iconUrl from '../icon.svg';
import { toSearch, type UrlState } from '../url-state.ts';
import type { ViewDefinition } from './view.ts';

export interface Shell {
  readonly element: HTMLElement;
  /** Updates the navigation and the title, and replaces the content if it is a different element. */
  show(state: UrlState, view: ViewDefinition, content: HTMLElement): void;
  setProjectInvalid(isInvalid: boolean): void;
}

export interface ShellOptions {
  readonly views: readonly ViewDefinition[];
  /** The state to which a link to the view leads. */
  stateOf(view: ViewDefinition): UrlState;
  navigate(state: UrlState): void;
  onProjectChange(project: string): void;
  onSignOut(): void;
}

export function createShell(options: ShellOptions): Shell {
  const { views, stateOf, navigate, onProjectChange, onSignOut } = options;
  const project = createProjectField(onProjectChange);
  const links = views.map(view => {
    const link = h('a', { class: 'nav-link' }, view.title);
    link.addEventListener('click', event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      navigate(stateOf(view));
    });
    return { view, link };
  });
  const signOut = h(
    'button',
    { type: 'button', class: 'button ghost', title: 'Remove the token from this tab' },
    'Sign out',
  );
  signOut.addEventListener('click', onSignOut);
  const title = h('h1', { class: 'visually-hidden' });
  const main = h('main', { id: 'content', tabindex: -1 });
  const element = h(
    'div',
    { class: 'shell' },
    h('a', { class: 'skip-link', href: '#content' }, 'Skip to content'),
    h(
      'header',
      {},
      h('div', { class: 'bar' }, createLogo(), project.element, signOut),
      h('nav', { 'aria-label': 'Views' }, ...links.map(({ link }) => link)),
    ),
    main,
    h(
      'footer',
      {},
      timeZone === 'UTC' ? 'Times are in UTC. ' : `Times are in ${timeZone}. Hover over a time for UTC. `,
      h('a', { href: 'openapi.json' }, 'API description'),
    ),
  );
  return {
    element,
    setProjectInvalid: project.setInvalid,
    show(state, current, content) {
      project.setValue(state.project);
      for (const { view, link } of links) {
        const isCurrent = view === current;
        link.href = toSearch(isCurrent ? state : stateOf(view));
        setAttribute(link, 'aria-current', isCurrent ? 'page' : undefined);
        if (isCurrent) link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      }
      title.textContent = current.title;
      document.title = [current.title, state.project, 'Dendro'].filter(text => text !== '').join(' · ');
      if (main.lastElementChild !== content) replaceChildren(main, title, content);
    },
  };
}

export function createLogo(): HTMLElement {
  return h('span', { class: 'logo' }, h('img', { src: iconUrl, alt: '', width: 24, height: 24 }), 'Dendro');
}

function createProjectField(onChange: (project: string) => void) {
  const suggestions = h('datalist', { id: 'recent-projects' });
  const input = h('input', {
    id: 'project',
    type: 'text',
    class: 'mono',
    list: 'recent-projects',
    placeholder: 'project reference',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    enterkeyhint: 'go',
  });
  const form = h(
    'form',
    { class: 'project', role: 'search' },
    h('label', { for: 'project' }, 'Project'),
    input,
    suggestions,
  );
  let current = '';
  const commit = () => {
    const value = input.value.trim();
    if (value !== current) onChange(value);
  };
  form.addEventListener('submit', event => {
    event.preventDefault();
    commit();
  });
  input.addEventListener('change', commit);
  return {
    element: form,
    setInvalid: (isInvalid: boolean) => setInvalid(input, isInvalid),
    setValue(project: string) {
      current = project;
      if (input.value.trim() !== project) input.value = project;
      saveRecentProject(project);
      replaceChildren(suggestions, ...readRecentProjects().map(value => h('option', { value })));
      if (project === '') input.focus();
    },
  };
}

/** Session storage key of the projects that this tab has shown, newest first. */
const RECENT_PROJECTS_KEY = 'dendro.projects';
const MAX_RECENT_PROJECTS = 12;

function readRecentProjects(): readonly string[] {
  try {
    const saved: unknown = JSON.parse(sessionStorage.getItem(RECENT_PROJECTS_KEY) ?? '[]');
    return Array.isArray(saved) ? saved.filter(project => typeof project === 'string') : [];
  } catch {
    return [];
  }
}

function saveRecentProject(project: string): void {
  if (project === '') return;
  const others = readRecentProjects().filter(other => other !== project);
  const projects = [project, ...others].slice(0, MAX_RECENT_PROJECTS);
  sessionStorage.setItem(RECENT_PROJECTS_KEY, JSON.stringify(projects));
}
