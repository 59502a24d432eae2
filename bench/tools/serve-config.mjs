// The configuration that `dendro serve` would have with these flags, for servers that run inside a process of a benchmark.
import { commands } from '../../dist/cli/commands.js';
import { readInvocation, readServeConfig } from '../../dist/config.js';

export function makeServeConfig(args, apiKey) {
  const { flags } = commands.find(({ name }) => name === 'serve');
  const ports = ['--port', '0', '--internal-port', '0'];
  return readServeConfig(readInvocation([...ports, ...args], { DENDRO_API_KEY: apiKey }, flags));
}

/** Nothing may go wrong unnoticed while something is measured. */
export function throwFaults(event) {
  if ('error' in event) throw event.error;
}
