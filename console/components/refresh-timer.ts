// When the page refreshes a result.

/** A one-shot timer that does not fire while the tab is hidden. A timer that is overdue fires when the tab is shown. */
export class RefreshTimer {
  readonly #run: () => void;
  /** Unix milliseconds; undefined if no run is scheduled. */
  #dueAt: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(run: () => void) {
    this.#run = run;
    document.addEventListener('visibilitychange', this.#update);
  }

  /** Replaces the scheduled run; undefined cancels it. */
  schedule(seconds: number | undefined): void {
    this.#dueAt = seconds === undefined ? undefined : Date.now() + seconds * 1000;
    this.#update();
  }

  close(): void {
    this.schedule(undefined);
    document.removeEventListener('visibilitychange', this.#update);
  }

  readonly #update = (): void => {
    clearTimeout(this.#timer);
    if (this.#dueAt === undefined || document.hidden) return;
    this.#timer = setTimeout(
      () => {
        this.#dueAt = undefined;
        this.#run();
      },
      Math.max(0, this.#dueAt - Date.now()),
    );
  };
}
