// The frame around every view: logo, project field, theme and help buttons, navigation, sign-out button and footer.
import type { Endpoint } from '../api/catalog.ts';
import { type Combobox, createCombobox } from '../components/combobox.ts';
import { openHelpDialog } from '../components/help-dialog.ts';
import { createRangeControl } from '../components/range-control.ts';
import { h, replaceChildren } from '../dom.ts';
import { timeZone } from '../format.ts';
import iconUrl from '../icon.svg';
import { saveRecentProject, suggestProjects } from '../projects.ts';
import type { Shortcut } from '../shortcuts.ts';
import { readTheme, saveTheme, THEMES, type Theme } from '../theme.ts';
import type { UrlState } from '../url-state.ts';
import { createNavigation, type NavigationOptions } from './navigation.ts';
import type { ViewDefinition } from './view.ts';

export interface Shell {
  readonly element: HTMLElement;
  readonly shortcuts: readonly Shortcut[];
  /** Updates the navigation and the title, and replaces the content if it is a different element. */
  show(state: UrlState, view: ViewDefinition, content: HTMLElement): void;
  /** Marks the field of this parameter, if the shell has one. */
  markInvalid(param: string | undefined): void;
}

export interface ShellOptions extends NavigationOptions {
  readonly catalog: readonly Endpoint[];
  /** All shortcuts of the page, for the help. */
  listShortcuts(): readonly Shortcut[];
  onProjectChange(project: string): void;
  onRangeChange(settings: UrlState['settings']): void;
  /** Opens what is different in the time range; undefined if the token cannot call logs.compare. */
  readonly onCompare: (() => void) | undefined;
  onSignOut(): void;
}

export function createShell(options: ShellOptions): Shell {
  const { catalog, views, stateOf, navigate, listShortcuts, onProjectChange, onSignOut } = options;
  let current = '';
  const project = createCombobox({
    id: 'project',
    placeholder: 'project reference',
    suggest: (text, signal) => suggestProjects(catalog, text, signal),
    onCommit: onProjectChange,
  });
  project.input.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || event.defaultPrevented) return; // it has closed the suggestions
    project.setValue(current);
    project.input.blur();
  });
  const range = createRangeControl(options.onRangeChange, options.onCompare);
  const navigation = createNavigation(options);
  const theme = createThemeButton();
  const openHelp = () => openHelpDialog(listShortcuts());
  const title = h('h1', { class: 'visually-hidden' });
  const main = h('main', { id: 'content', tabindex: -1 });
  const bar = createBar(project, theme.element, openHelp, onSignOut);
  const element = h(
    'div',
    { class: 'shell' },
    h('a', { class: 'skip-link', href: '#content' }, 'Skip to content'),
    h('header', {}, bar, h('div', { class: 'nav-row' }, navigation.element, range.element), range.details),
    main,
    createFooter(),
  );
  return {
    element,
    shortcuts: [
      { key: '?', description: 'Show this help', run: openHelp },
      { key: 'p', description: 'Choose a project', run: () => project.open() },
      ...views.slice(0, 9).map((view, i) => ({
        key: String(i + 1),
        description: `Open ${view.title}`,
        run: () => navigate(stateOf(view)),
      })),
      ...(navigation.openMenu === undefined
        ? []
        : [{ key: 'e', description: 'Choose an endpoint', run: navigation.openMenu }]),
      ...range.shortcuts,
      { key: 'd', description: 'Change the theme', run: theme.change },
    ],
    markInvalid(param) {
      project.setInvalid(param === 'project');
      range.markInvalid(param);
    },
    show(state, view, content) {
      const wasEmpty = project.input.value === '';
      current = state.project;
      project.setValue(current);
      range.show(state.settings);
      saveRecentProject(state.project);
      navigation.show(state, view);
      title.textContent = view.title;
      document.title = [view.title, state.project, 'Dendro'].filter(text => text !== '').join(' · ');
      if (main.lastElementChild !== content) replaceChildren(main, title, content);
      if (current === '') project.input.focus();
      // The page opened the project by itself or by a link: shortcuts must not type into the field.
      else if (wasEmpty) project.input.blur();
    },
  };
}

export function createLogo(): HTMLElement {
  return h('span', { class: 'logo' }, h('img', { src: iconUrl, alt: '', width: 24, height: 24 }), 'Dendro');
}

function createBar(
  project: Combobox,
  themeButton: HTMLElement,
  openHelp: () => void,
  onSignOut: () => void,
): HTMLElement {
  const help = h(
    'button',
    {
      type: 'button',
      class: 'button ghost',
      'aria-label': 'Keyboard shortcuts and search',
      title: 'Keyboard shortcuts and search (?)',
    },
    '?',
  );
  help.addEventListener('click', openHelp);
  const signOut = h(
    'button',
    { type: 'button', class: 'button ghost', title: 'Remove the token from this browser' },
    'Sign out',
  );
  signOut.addEventListener('click', onSignOut);
  return h(
    'div',
    { class: 'bar' },
    createLogo(),
    h(
      'div',
      { class: 'project', role: 'search' },
      h('label', { for: 'project' }, 'Project'),
      project.element,
    ),
    h('div', { class: 'bar-buttons' }, themeButton, help, signOut),
  );
}

const THEME_ICONS: Readonly<Record<Theme, string>> = { system: '◐', light: '☀', dark: '☾' };

/** A button that changes to the next theme. */
function createThemeButton() {
  const button = h('button', { type: 'button', class: 'button ghost' });
  const update = () => {
    const theme = readTheme();
    replaceChildren(
      button,
      `${THEME_ICONS[theme]} `,
      h('span', {}, theme.charAt(0).toUpperCase() + theme.slice(1)),
    );
    button.setAttribute('aria-label', `Theme: ${theme}`);
    button.title = 'Change the theme: system, light, dark (d)';
  };
  const change = () => {
    saveTheme(THEMES[(THEMES.indexOf(readTheme()) + 1) % THEMES.length] ?? 'system');
    update();
  };
  button.addEventListener('click', change);
  update();
  return { element: button, change };
}

function createFooter(): HTMLElement {
  return h(
    'footer',
    {},
    timeZone === 'UTC' ? 'Times are in UTC. ' : `Times are in ${timeZone}. Hover over a time for UTC. `,
    h('a', { href: 'openapi.json' }, 'API description'),
  );
}
