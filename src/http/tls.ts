// Reads the certificate and key of a TLS listener.
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { OperatorError } from '../domain/errors.ts';

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** Reads and checks the pair, so that a bad file stops the start with a message that names it. */
export function readTlsPair({ cert, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  const pair = { cert: readPem(cert, '--tls-cert'), key: readPem(key, '--tls-key') };
  checkPair({ cert: pair.cert }, `--tls-cert ${cert} is not a PEM certificate`);
  checkPair({ key: pair.key }, `--tls-key ${key} is not a PEM key without a passphrase`);
  checkPair(pair, `--tls-key ${key} is not the key of the certificate in --tls-cert ${cert}`);
  return pair;
}

function checkPair(options: { cert?: Buffer; key?: Buffer }, message: string): void {
  try {
    createSecureContext(options);
  } catch {
    throw new OperatorError(message);
  }
}

function readPem(file: string, flag: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new OperatorError(`${flag} ${file} cannot be read: ${(error as Error).message}`);
  }
}
