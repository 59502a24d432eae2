// The interface between the app and its views. A view is a page of the console that shows one endpoint.
import type { ApiError } from '../api/client.ts';
import type { UrlState } from '../url-state.ts';

export interface ViewContext {
  /** Changes settings of this view in the URL. The app then calls `show`. */
  updateSettings(settings: Readonly<Record<string, string>>): void;
  onUnauthorized(error: ApiError): void;
  /** The project field is part of the shell, not of the view. */
  setProjectInvalid(isInvalid: boolean): void;
}

export interface View {
  readonly element: HTMLElement;
  /** Called when the view opens, and whenever the URL changes within the view. */
  show(state: UrlState): void;
  close(): void;
}

export interface ViewDefinition {
  /** The value of `view` in the URL. */
  readonly name: string;
  readonly title: string;
  /** Settings that apply if the URL does not have them. */
  readonly defaults: Readonly<Record<string, string>>;
  open(context: ViewContext): View;
}
