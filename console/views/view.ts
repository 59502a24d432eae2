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
  logsOpenerFor(kind: string): OpenLogs | undefined;
  /** A link to records of the project and a log kind, by default all; only its text if the logs view cannot show them. */
  linkToLogs(text: string, kind: string, settings?: UrlState['settings']): HTMLElement;
  /** A link to another view of the project, or only its text if there is no such view. */
  linkToView(text: string, view: string, settings: UrlState['settings']): HTMLElement;
  /** A link to this view of another project. */
  linkToProject(project: string): HTMLElement;
  /** Changes settings of this view in the URL. The app then calls `show`. */
  updateSettings(settings: Readonly<Record<string, string>>): void;
  /** The link to this view with other settings. */
  toLink(settings: Readonly<Record<string, string>>): string;
  onUnauthorized(error: ApiError): void;
  /** What the view shows while no project is chosen. */
  createProjectPrompt(): HTMLElement;
  /** Marks the field of the project or of the time range, which are part of the shell; undefined: none of them is invalid. */
  markInvalid(param: string | undefined): void;
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
  /** The log kind whose records the view shows, for a link to them. */
  readonly kind?: string;
  /** The search expression for these records; empty: all of the kind. */
  toQuery?(settings: UrlState['settings']): string;
  /** A generic view, which can show any endpoint. */
  readonly isGeneric?: boolean;
  /** Settings that apply if the URL does not have them. */
  readonly defaults: Readonly<Record<string, string>>;
  /** Settings that apply if the URL does not have them, and that it does not get either. */
  readonly implied?: Readonly<Record<string, string>>;
  /** The settings of the first page, for a view with pages. They apply when the project changes: a page belongs to one project. */
  readonly firstPage?: Readonly<Record<string, string>>;
  open(context: ViewContext): View;
}
