// Elements without a framework: one function that makes them. Text goes in as text, so nothing is ever parsed as HTML.

export type Child = Node | string | undefined;

type Attribute = string | number | boolean | undefined;

interface Properties {
  readonly [attribute: string]: Attribute | Listeners | undefined;
  readonly on?: Listeners;
}

type Listeners = {
  readonly [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void;
};

/** `true` is an attribute without a value; `false` and undefined leave it out. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  properties: Properties = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'on') listen(element, value as Listeners);
    else setAttribute(element, name, value as Attribute);
  }
  element.append(...present(children));
  return element;
}

export function setAttribute(element: Element, name: string, value: Attribute): void {
  if (value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : String(value));
}

export function replaceChildren(element: Element, ...children: Child[]): void {
  element.replaceChildren(...present(children));
}

let ids = 0;

/** An id that no other element has. */
export function newId(prefix: string): string {
  ids += 1;
  return `${prefix}-${ids}`;
}

function listen(element: HTMLElement, listeners: Listeners): void {
  for (const [name, listener] of Object.entries(listeners))
    element.addEventListener(name, listener as EventListener);
}

function present(children: readonly Child[]): (Node | string)[] {
  return children.filter(child => child !== undefined);
}
