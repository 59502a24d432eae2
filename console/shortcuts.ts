// Keyboard shortcuts of the page. They are off while the focus is in a field that accepts typing, or a dialog is open.

export interface Shortcut {
  /** The value of `KeyboardEvent.key`. */
  readonly key: string;
  /** For the help, such as "Refresh the result". */
  readonly description: string;
  run(): void;
}

/** `getShortcuts` is called for each key. The first shortcut with the key runs. */
export function listenForShortcuts(getShortcuts: () => readonly Shortcut[]): void {
  addEventListener('keydown', event => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (acceptsTyping(event.target) || document.querySelector('dialog[open]') !== null) return;
    const shortcut = getShortcuts().find(({ key }) => key === event.key);
    if (shortcut === undefined) return;
    event.preventDefault(); // otherwise the key would be typed into the field that gets the focus
    shortcut.run();
  });
}

function acceptsTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !['radio', 'checkbox'].includes(target.type);
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLElement && target.isContentEditable)
  );
}
