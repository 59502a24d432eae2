// The page's colours, for the canvas, which cannot read stylesheets. Tells when they change with light and dark.

export interface ChartTheme {
  readonly text: string;
  readonly grid: string;
  readonly surface: string;
  color(name: string): string;
}

export function readTheme(): ChartTheme {
  const styles = getComputedStyle(document.documentElement);
  const color = (name: string) => styles.getPropertyValue(`--${name}`).trim();
  return { text: color('text-muted'), grid: color('grid'), surface: color('surface'), color };
}

const darkness = matchMedia('(prefers-color-scheme: dark)');

/** Answers how to stop listening. */
export function onThemeChange(listener: () => void): () => void {
  darkness.addEventListener('change', listener);
  return () => darkness.removeEventListener('change', listener);
}
