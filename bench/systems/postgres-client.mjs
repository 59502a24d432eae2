// A minimal PostgreSQL client: one connection without a password, simple queries, every value as text.
import { once } from 'node:events';
import { connect } from 'node:net';

/** @typedef {(string | null)[]} TextRow */

/** @param {number} port @param {string} user @param {string} database */
export async function connectPostgres(port, user, database) {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  await once(socket, 'connect');
  /** @type {{ resolve: (rows: TextRow[]) => void, reject: (error: Error) => void } | undefined} */
  let waiting;
  /** @type {TextRow[]} */
  let rows = [];
  /** @type {Error | undefined} */
  let error;
  /** @type {Buffer} */
  let unread = Buffer.alloc(0);
  socket.on('data', (/** @type {Buffer} */ data) => {
    unread = unread.length === 0 ? data : Buffer.concat([unread, data]);
    while (unread.length >= 5 && unread.length > unread.readInt32BE(1)) {
      const end = 1 + unread.readInt32BE(1);
      handleMessage(String.fromCharCode(unread[0]), unread.subarray(5, end));
      unread = unread.subarray(end);
    }
  });
  /** @param {unknown} reason */
  const fail = reason =>
    waiting?.reject(reason instanceof Error ? reason : new Error('PostgreSQL closed the connection'));
  socket.on('error', fail).on('close', fail);

  /** D is a row, E an error, Z the end of the response. @param {string} type @param {Buffer} body */
  function handleMessage(type, body) {
    if (type === 'D') rows.push(readRow(body));
    else if (type === 'E') error = new Error(readError(body));
    else if (type === 'Z') {
      if (error === undefined) waiting?.resolve(rows);
      else waiting?.reject(error);
      [rows, error, waiting] = [[], undefined, undefined];
    }
  }
  /** @returns {Promise<TextRow[]>} */
  const waitForResponse = () =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
    });

  const startup = Buffer.from(`\0\x03\0\0user\0${user}\0database\0${database}\0\0`, 'latin1');
  socket.write(Buffer.concat([toInt32(startup.length + 4), startup]));
  await waitForResponse();
  return {
    /** @param {string} sql */
    query(sql) {
      const body = Buffer.from(`${sql}\0`);
      socket.write(Buffer.concat([Buffer.from('Q'), toInt32(body.length + 4), body]));
      return waitForResponse();
    },
    end: () => socket.destroy(),
  };
}

/** @param {number} value */
function toInt32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

/** @param {Buffer} body */
function readRow(body) {
  let at = 2;
  return Array.from({ length: body.readInt16BE(0) }, () => {
    const length = body.readInt32BE(at);
    at += 4;
    if (length < 0) return null;
    at += length;
    return body.toString('utf8', at - length, at);
  });
}

/** The field M of an error is its message. @param {Buffer} body */
function readError(body) {
  const fields = body.toString('utf8').split('\0');
  return (
    fields.find(field => field.startsWith('M'))?.slice(1) ?? 'PostgreSQL returned an error without a message'
  );
}
