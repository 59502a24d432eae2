// What the operating system knows about processes, directories and ports.
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/**
 * CPU time of a process so far (user and system) in milliseconds. Linux counts it in hundredths of a second.
 * @param {number | undefined} pid
 */
export function readCpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** @param {number | undefined} pid */
export function readResidentMiB(pid) {
  return readStatusMiB(pid, 'VmRSS');
}

/** The highest value since the process started. @param {number | undefined} pid */
export function readPeakResidentMiB(pid) {
  return readStatusMiB(pid, 'VmHWM');
}

/** @param {number | undefined} pid @param {string} field */
function readStatusMiB(pid, field) {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Math.round(Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(text)?.[1]) / 1024);
}

/**
 * The sum of the sizes of all files in a directory.
 * @param {string} directory
 */
export function readDirectoryBytes(directory) {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/**
 * Ports of the loopback interface that no process listens on.
 * @param {number} count
 */
export async function findFreePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map(server => once(server, 'listening')));
  const ports = servers.map(server => portOf(server));
  await Promise.all(servers.map(server => once(server.close(), 'close')));
  return ports;
}

/** @param {import('node:net').Server} server */
export function portOf(server) {
  const address = server.address();
  if (address === null || typeof address === 'string')
    throw new Error('the server does not listen on a port');
  return address.port;
}
