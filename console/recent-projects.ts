// Projects that were looked at in this tab, offered when the next one is typed.

const KEY = 'dendro.projects';
const MOST = 12;

export function recentProjects(): readonly string[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
    return Array.isArray(kept) ? kept.filter(project => typeof project === 'string') : [];
  } catch {
    return [];
  }
}

export function rememberProject(project: string): void {
  if (project === '') return;
  const others = recentProjects().filter(known => known !== project);
  sessionStorage.setItem(KEY, JSON.stringify([project, ...others].slice(0, MOST)));
}
