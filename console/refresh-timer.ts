// Runs something again and again while somebody looks: a hidden tab asks nothing, and catches up when it is seen.

export class RefreshTimer {
  readonly #run: () => void;
  #dueAt: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(run: () => void) {
    this.#run = run;
    document.addEventListener('visibilitychange', this.#arm);
  }

  /** Replaces whatever was planned; undefined: nothing is. */
  plan(seconds: number | undefined): void {
    this.#dueAt = seconds === undefined ? undefined : Date.now() + seconds * 1000;
    this.#arm();
  }

  close(): void {
    this.plan(undefined);
    document.removeEventListener('visibilitychange', this.#arm);
  }

  readonly #arm = (): void => {
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
