// The certificate of a listener that speaks TLS.
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { OperatorError } from '../domain/errors.ts';

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** Reads and tries the pair, so that a bad one stops the start with a line that says which file to look at. */
export function readTlsPair({ cert, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  const pair = { cert: readPem(cert, '--tls-cert'), key: readPem(key, '--tls-key') };
  tryPair({ cert: pair.cert }, `${cert}: is not a PEM certificate`);
  tryPair({ key: pair.key }, `${key}: is not a PEM key without a passphrase`);
  tryPair(pair, `${key}: is not the key of the certificate in ${cert}`);
  return pair;
}

function tryPair(options: { cert?: Buffer; key?: Buffer }, fault: string): void {
  try {
    createSecureContext(options);
  } catch {
    throw new OperatorError(fault);
  }
}

function readPem(file: string, flag: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new OperatorError(`${flag} ${file} cannot be read: ${(error as Error).message}`);
  }
}
