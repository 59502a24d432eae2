// The theme: light, dark, or the same as the system. The choice is saved in this browser. initial-theme.js applies it before the
// page is painted.

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'dendro.theme'; // also in initial-theme.js
const darkModeQuery = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
darkModeQuery.addEventListener('change', notify);

export function readTheme(): Theme {
  return THEMES.find(theme => theme === localStorage.getItem(KEY)) ?? 'system';
}

export function saveTheme(theme: Theme): void {
  if (theme === 'system') {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset['theme'];
  } else {
    localStorage.setItem(KEY, theme);
    document.documentElement.dataset['theme'] = theme;
  }
  notify();
}

/** Calls the listener when colours change. Returns a function that removes it. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function notify(): void {
  for (const listener of listeners) listener();
}
