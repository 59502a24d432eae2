// The certificate and the private key of a listener with TLS.
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { OperatorError } from '../domain/errors.ts';
import { describeFileError } from '../system/file-access.ts';

/** Paths of the PEM files, and the names of the files in error messages. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly names?: { readonly cert: string; readonly key: string };
}

/** Reads and checks both files. If one is bad, startup fails with a message that names it. */
export function readTlsPair({ cert, key, names = { cert: '--tls-cert', key: '--tls-key' } }: TlsFiles): {
  cert: Buffer;
  key: Buffer;
} {
  const pair = { cert: readPem(cert, names.cert), key: readPem(key, names.key) };
  checkPem({ cert: pair.cert }, `${names.cert} ${cert} is not a PEM certificate`);
  checkPem({ key: pair.key }, `${names.key} ${key} is not an unencrypted PEM private key`);
  checkPem(pair, `${names.key} ${key} is not the private key of the certificate in ${names.cert} ${cert}`);
  return pair;
}

function checkPem(options: { cert?: Buffer; key?: Buffer }, message: string): void {
  try {
    createSecureContext(options);
  } catch {
    throw new OperatorError(message);
  }
}

function readPem(file: string, name: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new OperatorError(
      `${name} ${file} cannot be read: ${describeFileError(file, error as NodeJS.ErrnoException)}`,
    );
  }
}
