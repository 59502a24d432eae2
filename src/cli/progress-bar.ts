// A progress bar on a terminal; nothing anywhere else.

const WIDTH = 30;
const REDRAW_MS = 100;

export interface ProgressBar {
  /** `share` is from 0 to 1, or undefined where the whole is not known. */
  update(share: number | undefined, note: string): void;
  /** Takes the bar off the screen. */
  clear(): void;
}

export function makeProgressBar(label: string, terminal: NodeJS.WriteStream): ProgressBar {
  let lastDrawn = 0;
  return {
    update(share, note) {
      if (!terminal.isTTY || performance.now() - lastDrawn < REDRAW_MS) return;
      lastDrawn = performance.now();
      terminal.write(`\r\x1b[K${label} ${share === undefined ? '' : `${drawBar(share)} `}${note}`);
    },
    clear() {
      if (terminal.isTTY && lastDrawn > 0) terminal.write('\r\x1b[K');
    },
  };
}

function drawBar(share: number): string {
  const filled = Math.round(Math.min(share, 1) * WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${Math.floor(Math.min(share, 1) * 100)}%`;
}
