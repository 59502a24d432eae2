// Creates DOM elements without a framework. Strings become text nodes, so nothing is parsed as HTML.

export type Child = Node | string | undefined;

type Attribute = string | number | boolean | undefined;

interface Properties {
  readonly [attribute: string]: Attribute | Listeners | undefined;
  readonly on?: Listeners;
}

type Listeners = {
  readonly [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void;
};

/** An attribute that is `true` has no value; one that is `false` or undefined is left out. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'on') addListeners(element, value as Listeners);
    else setAttribute(element, name, value as Attribute);
  }
  element.append(...withoutUndefined(children));
  return element;
}

export function setAttribute(element: Element, name: string, value: Attribute): void {
  if (value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : String(value));
}

export function setInvalid(input: Element, isInvalid: boolean): void {
  setAttribute(input, 'aria-invalid', isInvalid ? 'true' : undefined);
}

export function replaceChildren(element: Element, ...children: Child[]): void {
  element.replaceChildren(...withoutUndefined(children));
}

/** A click that opens a link in this tab. */
export function isPlainClick(event: MouseEvent): boolean {
  return !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0;
}

let lastId = 0;

/** An id that is unique within the page. */
export function createId(prefix: string): string {
  lastId += 1;
  return `${prefix}-${lastId}`;
}

function addListeners(element: HTMLElement, listeners: Listeners): void {
  for (const [name, listener] of Object.entries(listeners))
    element.addEventListener(name, listener as EventListener);
}

function withoutUndefined(children: readonly Child[]): (Node | string)[] {
  return children.filter(child => child !== undefined);
}
