// The frame around every view: name, project, the list of views, and the way out.
import { type Place, toSearch } from '../address.ts';
import { h, replaceChildren, setAttribute } from '../dom.ts';
import { recentProjects, rememberProject } from '../recent-projects.ts';
import { timeZone } from '../times.ts';
import { makeLogo } from './logo.ts';
import type { ViewKind } from './view.ts';

export interface Shell {
  readonly element: HTMLElement;
  /** Shows where the visitor is, and a view's element if it is another one than before. */
  show(place: Place, kind: ViewKind, content: HTMLElement): void;
  markProject(isAtFault: boolean): void;
}

export interface ShellParts {
  readonly kinds: readonly ViewKind[];
  /** The address of a view, as far as it is known from here. */
  placeOf(kind: ViewKind): Place;
  goTo(place: Place): void;
  onProject(project: string): void;
  onSignOut(): void;
}

export function makeShell({ kinds, placeOf, goTo, onProject, onSignOut }: ShellParts): Shell {
  const project = makeProjectField(onProject);
  const links = kinds.map(kind => {
    const link = h('a', { class: 'nav-link' }, kind.title);
    link.addEventListener('click', event => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      goTo(placeOf(kind));
    });
    return { kind, link };
  });
  const signOut = h(
    'button',
    { type: 'button', class: 'button quiet-button', title: 'Forget the token' },
    'Sign out',
  );
  signOut.addEventListener('click', onSignOut);
  const title = h('h1', { class: 'for-screen-readers' });
  const main = h('main', { id: 'content', tabindex: -1 });
  const element = h(
    'div',
    { class: 'shell' },
    h('a', { class: 'skip-link', href: '#content' }, 'Skip to the content'),
    h(
      'header',
      {},
      h('div', { class: 'bar' }, makeLogo(), project.element, signOut),
      h('nav', { 'aria-label': 'Views' }, ...links.map(({ link }) => link)),
    ),
    main,
    h(
      'footer',
      {},
      timeZone === 'UTC' ? 'Times are in UTC. ' : `Times are in ${timeZone}; hover over one for UTC. `,
      h('a', { href: 'openapi.json' }, 'API description'),
    ),
  );
  return {
    element,
    markProject: project.setFault,
    show(place, kind, content) {
      project.set(place.project);
      for (const { kind: each, link } of links) {
        link.href = toSearch(each === kind ? place : placeOf(each));
        setAttribute(link, 'aria-current', each === kind ? 'page' : undefined);
        if (each === kind) link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      }
      title.textContent = kind.title;
      document.title = [kind.title, place.project, 'Dendro'].filter(part => part !== '').join(' · ');
      if (main.lastElementChild !== content) replaceChildren(main, title, content);
    },
  };
}

function makeProjectField(onProject: (project: string) => void) {
  const known = h('datalist', { id: 'recent-projects' });
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
    known,
  );
  let current = '';
  const commit = () => {
    const wanted = input.value.trim();
    if (wanted !== current) onProject(wanted);
  };
  form.addEventListener('submit', event => {
    event.preventDefault();
    commit();
  });
  input.addEventListener('change', commit);
  return {
    element: form,
    setFault: (isAtFault: boolean) => setAttribute(input, 'aria-invalid', isAtFault ? 'true' : undefined),
    set(project: string) {
      current = project;
      if (input.value.trim() !== project) input.value = project;
      rememberProject(project);
      replaceChildren(known, ...recentProjects().map(value => h('option', { value })));
      if (project === '') input.focus();
    },
  };
}
