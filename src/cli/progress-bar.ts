// A progress bar on a terminal. Prints nothing if the stream is not a terminal.
import { escapeForTerminal } from './terminal.ts';

const WIDTH = 30;
const REDRAW_INTERVAL_MS = 100;

export interface ProgressBar {
  /** `share` is from 0 to 1, or undefined if the total is not known. */
  update(share: number | undefined, description: string): void;
  /** Removes the bar from the screen. */
  clear(): void;
}

export function createProgressBar(label: string, terminal: NodeJS.WriteStream): ProgressBar {
  let drawnAt = 0;
  return {
    update(share, description) {
      if (!terminal.isTTY || performance.now() - drawnAt < REDRAW_INTERVAL_MS) return;
      drawnAt = performance.now();
      terminal.write(
        `\r\x1b[K${escapeForTerminal(label)} ${share === undefined ? '' : `${drawBar(share)} `}${description}`,
      );
    },
    clear() {
      if (terminal.isTTY && drawnAt > 0) terminal.write('\r\x1b[K');
    },
  };
}

function drawBar(share: number): string {
  const filled = Math.round(Math.min(share, 1) * WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${Math.floor(Math.min(share, 1) * 100)}%`;
}
