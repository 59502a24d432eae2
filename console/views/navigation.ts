// The navigation: a link for each view, in one row. If there are many endpoints, their links are in a menu with a filter instead.
import { createId, h, isPlainClick, setAttribute } from '../dom.ts';
import { toSearch, type UrlState } from '../url-state.ts';
import type { ViewDefinition } from './view.ts';

/** Up to this many endpoints without a specialized view are links in the row. */
const MAX_ENDPOINT_LINKS = 5;

export interface NavigationOptions {
  readonly views: readonly ViewDefinition[];
  /** The state to which a link to the view leads. */
  stateOf(view: ViewDefinition): UrlState;
  navigate(state: UrlState): void;
}

export interface Navigation {
  readonly element: HTMLElement;
  show(state: UrlState, current: ViewDefinition): void;
  /** Undefined if all views are in the row. */
  readonly openMenu: (() => void) | undefined;
}

interface ViewLink {
  readonly view: ViewDefinition;
  readonly link: HTMLAnchorElement;
}

export function createNavigation({ views, stateOf, navigate }: NavigationOptions): Navigation {
  const createLink = (view: ViewDefinition): ViewLink => {
    const link = h('a', { class: 'nav-link' }, view.title);
    link.addEventListener('click', event => {
      if (!isPlainClick(event)) return;
      event.preventDefault();
      navigate(stateOf(view));
    });
    return { view, link };
  };
  const links = views.map(createLink);
  const endpoints = links.filter(({ view }) => view.isGeneric === true);
  const hasMenu = endpoints.length > MAX_ENDPOINT_LINKS;
  const row = hasMenu ? links.filter(link => !endpoints.includes(link)) : links;
  const menu = hasMenu ? createMenu(endpoints) : undefined;
  return {
    element: h(
      'nav',
      { 'aria-label': 'Views' },
      ...row.map(({ link }) => link),
      ...(menu === undefined ? [] : menu.elements),
    ),
    openMenu: menu?.open,
    show(state, current) {
      for (const { view, link } of links) {
        const isCurrent = view === current;
        link.href = toSearch(isCurrent ? state : stateOf(view));
        setAttribute(link, 'aria-current', isCurrent ? 'page' : undefined);
        if (isCurrent) link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      }
      menu?.show(current);
    },
  };
}

/** A button that opens a popover with the links of the endpoints, grouped by the first part of their names. */
function createMenu(links: readonly ViewLink[]) {
  const id = createId('endpoints');
  const caption = h('span', {});
  const button = h(
    'button',
    { type: 'button', class: 'nav-link nav-menu-button', popovertarget: id },
    caption,
  );
  const filter = h('input', { type: 'search', placeholder: 'Filter', 'aria-label': 'Filter endpoints' });
  const groups = groupByPrefix(links);
  const empty = h('p', { class: 'muted', hidden: true }, 'No endpoint contains this text.');
  const popover = h(
    'div',
    { id, class: 'nav-menu card', popover: 'auto' },
    filter,
    empty,
    ...groups.map(({ element }) => element),
  );
  const visible = () => links.filter(({ link }) => link.closest('[hidden]') === null);
  const applyFilter = () => {
    const text = filter.value.trim().toLowerCase();
    for (const { view, link } of links)
      if (link.parentElement !== null) link.parentElement.hidden = !view.title.toLowerCase().includes(text);
    for (const group of groups)
      group.element.hidden = group.links.every(({ link }) => link.parentElement?.hidden === true);
    empty.hidden = visible().length > 0;
  };
  filter.addEventListener('input', applyFilter);
  popover.addEventListener('toggle', () => {
    filter.value = '';
    applyFilter();
    if (popover.matches(':popover-open')) filter.focus();
  });
  popover.addEventListener('beforetoggle', () => placeBelow(button, popover));
  popover.addEventListener('keydown', event => moveFocus(event, filter, visible()));
  for (const { link } of links) link.addEventListener('click', () => popover.hidePopover());
  return {
    elements: [button, popover],
    open: () => popover.showPopover(),
    show(current: ViewDefinition) {
      const isCurrent = links.some(({ view }) => view === current);
      caption.textContent = isCurrent ? `Endpoints: ${current.title}` : `Endpoints (${links.length})`;
      setAttribute(button, 'aria-current', isCurrent ? 'true' : undefined);
    },
  };
}

function groupByPrefix(links: readonly ViewLink[]) {
  const groups = new Map<string, ViewLink[]>();
  for (const link of links) {
    const prefix = link.view.title.split('.')[0] ?? '';
    groups.set(prefix, [...(groups.get(prefix) ?? []), link]);
  }
  return [...groups].map(([prefix, members]) => ({
    links: members,
    element: h(
      'section',
      {},
      h('h2', {}, prefix),
      h('ul', {}, ...members.map(({ link }) => h('li', {}, link))),
    ),
  }));
}

/** The width of `.nav-menu` in style/overlays.css. */
const MENU_WIDTH_PIXELS = 560;

function placeBelow(button: HTMLElement, popover: HTMLElement): void {
  const { left, bottom } = button.getBoundingClientRect();
  const pageWidth = document.documentElement.clientWidth;
  const maxLeft = pageWidth - Math.min(MENU_WIDTH_PIXELS, pageWidth);
  popover.style.left = `${Math.max(0, Math.min(left, maxLeft))}px`;
  popover.style.top = `${bottom + 4}px`;
}

/** The arrow keys move between the filter and the links. Enter in the filter opens the first link. */
function moveFocus(event: KeyboardEvent, filter: HTMLInputElement, links: readonly ViewLink[]): void {
  const targets = [filter, ...links.map(({ link }) => link)];
  const current = targets.indexOf(event.target as HTMLInputElement | HTMLAnchorElement);
  if (event.key === 'Enter' && current === 0) links[0]?.link.click();
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  targets[Math.min(Math.max(current + step, 0), targets.length - 1)]?.focus();
}
