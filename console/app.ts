// The console as a whole: signed out or in, and which view the address names.
import { type Place, readPlace, toSearch } from './address.ts';
import type { Endpoint } from './api/catalog.ts';
import { fetchCatalog } from './api/client.ts';
import { Fault } from './api/fault.ts';
import { forgetToken, keepToken, readToken, takeTokenFromAddress } from './token.ts';
import { endpointView } from './views/endpoint.ts';
import { functionsView } from './views/functions.ts';
import { logsView } from './views/logs.ts';
import { makeShell, type Shell } from './views/shell.ts';
import { makeSignIn } from './views/sign-in.ts';
import { usageView } from './views/usage.ts';
import type { View, ViewKind } from './views/view.ts';
import { makeWaiting } from './views/waiting.ts';

const BUILT_IN = [functionsView, usageView, logsView];

export class ConsoleApp {
  readonly #host: HTMLElement;
  #kinds: readonly ViewKind[] = [];
  #shell: Shell | undefined;
  #open: { kind: ViewKind; view: View } | undefined;
  /** The settings that each view was left with. */
  readonly #left = new Map<string, Place['settings']>();
  #place: Place = readPlace('');

  constructor(host: HTMLElement) {
    this.#host = host;
    addEventListener('popstate', () => this.#render());
    addEventListener('hashchange', () => {
      if (takeTokenFromAddress()) void this.enter();
    });
  }

  /** With the token at hand, or by asking for one. */
  async enter(): Promise<void> {
    if (readToken() === undefined) return this.#askForToken(undefined);
    try {
      this.#openShell(await fetchCatalog());
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (error.code === 'unauthorized' || error.code === 'forbidden')
        return this.#askForToken(error.message);
      this.#leave(makeWaiting(error));
      setTimeout(() => void this.enter(), (error.retryAfterSeconds ?? 5) * 1000);
    }
  }

  #askForToken(refusal: string | undefined): void {
    forgetToken();
    const form = makeSignIn(refusal, token => {
      keepToken(token);
      void this.enter();
    });
    this.#leave(form);
    form.querySelector('input')?.focus();
  }

  #openShell(catalog: readonly Endpoint[]): void {
    const names = new Set(catalog.map(({ name }) => name));
    const builtIn = BUILT_IN.filter(({ endpoint }) => names.has(endpoint));
    const others = catalog.filter(({ name }) => !BUILT_IN.some(({ endpoint }) => endpoint === name));
    this.#kinds = [...builtIn, ...others.map(endpointView)];
    this.#closeView();
    this.#shell = makeShell({
      kinds: this.#kinds,
      placeOf: kind => ({
        view: kind.name,
        project: this.#place.project,
        settings: this.#left.get(kind.name) ?? kind.defaults,
      }),
      goTo: place => this.#goTo(place),
      onProject: project => this.#goTo({ ...this.#place, project }),
      onSignOut: () => this.#askForToken(undefined),
    });
    this.#host.replaceChildren(this.#shell.element);
    this.#render();
  }

  #goTo(place: Place): void {
    history.pushState(null, '', toSearch(place));
    this.#render();
  }

  /** Shows what the address says; what it leaves out is filled in there, so that every link is whole. */
  #render(): void {
    const place = readPlace(location.search);
    const kind = this.#kinds.find(({ name }) => name === place.view) ?? this.#kinds[0];
    if (kind === undefined || this.#shell === undefined) return;
    const settings = kind.name === place.view ? place.settings : {};
    this.#place = { view: kind.name, project: place.project, settings: { ...kind.defaults, ...settings } };
    history.replaceState(null, '', toSearch(this.#place));
    this.#left.set(kind.name, this.#place.settings);
    if (this.#open?.kind !== kind) {
      this.#closeView();
      this.#open = { kind, view: this.#openView(kind) };
    }
    this.#shell.show(this.#place, kind, this.#open.view.element);
    this.#open.view.show(this.#place);
  }

  #openView(kind: ViewKind): View {
    return kind.open({
      change: settings => this.#goTo({ ...this.#place, settings: { ...this.#place.settings, ...settings } }),
      onUnauthorized: fault => this.#askForToken(fault.message),
      markProject: isAtFault => this.#shell?.markProject(isAtFault),
    });
  }

  #leave(screen: HTMLElement): void {
    this.#closeView();
    this.#shell = undefined;
    document.title = 'Dendro';
    this.#host.replaceChildren(screen);
  }

  #closeView(): void {
    this.#open?.view.close();
    this.#open = undefined;
  }
}
