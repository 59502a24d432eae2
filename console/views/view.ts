// The interface between the app and its views. A view is a page of the console that shows the results of one endpoint or of
// a few related ones.
import type { Endpoint } from '../api/catalog.ts';
import type { ApiError } from '../api/client.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import type { Shortcut } from '../shortcuts.ts';
import type { UrlState } from '../url-state.ts';

/** Opens the log records of a time range that match a search expression; without one, all of them. */
export type OpenLogs = (range: TimeRange, query?: string) => void;

export interface ViewContext {
  /** The endpoints that the token can call. */
  readonly catalog: readonly Endpoint[];
  /** Returns a function that opens the logs view; undefined if that view cannot show this log kind. */
  logsOpenerFor(kind: 'edge' | 'function_edge'): OpenLogs | undefined;
  /** Changes settings of this view in the URL. The app then calls `show`. */
  updateSettings(settings: Readonly<Record<string, string>>): void;
  onUnauthorized(error: ApiError): void;
  /** What the view shows while no project is chosen. */
  createProjectPrompt(): HTMLElement;
  /** The project field is part of the shell, not of the view. */
  setProjectInvalid(isInvalid: boolean): void;
}

export interface View {
  readonly element: HTMLElement;
  readonly shortcuts?: readonly Shortcut[];
  /** Called when the view opens, and whenever the URL changes within the view. */
  show(state: UrlState): void;
  close(): void;
}

export interface ViewDefinition {
  /** The value of `view` in the URL. */
  readonly name: string;
  readonly title: string;
  /** A generic view, which can show any endpoint. */
  readonly isGeneric?: boolean;
  /** Settings that apply if the URL does not have them. */
  readonly defaults: Readonly<Record<string, string>>;
  /** The settings of the first page, for a view with pages. They apply when the project changes: a page belongs to one project. */
  readonly firstPage?: Readonly<Record<string, string>>;
  open(context: ViewContext): View;
}
