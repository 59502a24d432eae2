// As much of PostgreSQL's protocol as asking takes: one connection, simple queries, every value as text.
import { once } from 'node:events';
import { connect } from 'node:net';

export async function connectPostgres(port, user, database) {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  await once(socket, 'connect');
  let waiting;
  let rows = [];
  let error;
  let rest = Buffer.alloc(0);
  socket.on('data', data => {
    rest = rest.length === 0 ? data : Buffer.concat([rest, data]);
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const end = 1 + rest.readInt32BE(1);
      take(String.fromCharCode(rest[0]), rest.subarray(5, end));
      rest = rest.subarray(end);
    }
  });
  const fail = reason => waiting?.reject(reason instanceof Error ? reason : new Error('PostgreSQL hung up'));
  socket.on('error', fail).on('close', fail);

  function take(type, body) {
    if (type === 'D') rows.push(readRow(body));
    else if (type === 'E') error = new Error(readError(body));
    else if (type === 'Z') {
      const { resolve, reject } = waiting;
      const answer = rows;
      const fault = error;
      [rows, error, waiting] = [[], undefined, undefined];
      if (fault === undefined) resolve(answer);
      else reject(fault);
    }
  }
  const untilReady = () =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject };
    });

  const startup = Buffer.from(`\0\x03\0\0user\0${user}\0database\0${database}\0\0`, 'latin1');
  socket.write(Buffer.concat([int32(startup.length + 4), startup]));
  await untilReady();
  return {
    query(sql) {
      const body = Buffer.from(`${sql}\0`);
      socket.write(Buffer.concat([Buffer.from('Q'), int32(body.length + 4), body]));
      return untilReady();
    },
    end: () => socket.destroy(),
  };
}

function int32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

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

/** The field M is the message for people. */
function readError(body) {
  const fields = body.toString('utf8').split('\0');
  return fields.find(field => field.startsWith('M'))?.slice(1) ?? 'PostgreSQL answered an error';
}
