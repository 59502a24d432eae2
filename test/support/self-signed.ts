// Creates a self-signed certificate for 127.0.0.1. Node can read certificates but not create them, and no test should depend
// on a program outside npm or on a file that expires.
import { generateKeyPairSync, sign } from 'node:crypto';

export interface SelfSigned {
  readonly cert: string;
  readonly key: string;
}

/** X.509 version 3, ECDSA with P-256 and SHA-256 (RFC 5280, RFC 5758), valid from 2020 to 2049. */
export function createSelfSigned(): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(der(SET, sequence(COMMON_NAME, der(UTF8_STRING, Buffer.from('dendro test')))));
  const content = sequence(
    der(VERSION, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.from([1])), // serial number
    ECDSA_WITH_SHA256,
    name,
    sequence(der(UTC_TIME, Buffer.from('200101000000Z')), der(UTC_TIME, Buffer.from('491231235959Z'))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXTENSIONS, sequence(sequence(ALTERNATIVE_NAME, der(OCTET_STRING, sequence(LOOPBACK))))),
  );
  const signature = sign('sha256', content, privateKey);
  const certificate = sequence(content, ECDSA_WITH_SHA256, der(BIT_STRING, Buffer.from([0]), signature));
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const OBJECT_ID = 0x06;
const UTF8_STRING = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;

/** Encodes one ASN.1 value in DER: tag, length, content. */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const prefix =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...prefix]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(SEQUENCE, ...parts);
}

const COMMON_NAME = der(OBJECT_ID, Buffer.from('550403', 'hex')); // 2.5.4.3
const ALTERNATIVE_NAME = der(OBJECT_ID, Buffer.from('551d11', 'hex')); // 2.5.29.17
const ECDSA_WITH_SHA256 = sequence(der(OBJECT_ID, Buffer.from('2a8648ce3d040302', 'hex'))); // 1.2.840.10045.4.3.2
const LOOPBACK = der(0x87, Buffer.from([127, 0, 0, 1])); // iPAddress of a subject's alternative names
