// What a view is: a page of the console that shows one endpoint.
import type { Place } from '../address.ts';
import type { Fault } from '../api/fault.ts';

export interface ViewContext {
  /** Goes to other settings of this view; they become part of the address. */
  change(settings: Readonly<Record<string, string>>): void;
  onUnauthorized(fault: Fault): void;
  /** The project has its field in the frame, which shows whether it is at fault. */
  markProject(isAtFault: boolean): void;
}

export interface View {
  readonly element: HTMLElement;
  /** Called first, and whenever the address has changed within the view. */
  show(place: Place): void;
  close(): void;
}

export interface ViewKind {
  /** How the address calls it. */
  readonly name: string;
  readonly title: string;
  readonly endpoint: string;
  /** Settings that the address does not give. */
  readonly defaults: Readonly<Record<string, string>>;
  open(context: ViewContext): View;
}
