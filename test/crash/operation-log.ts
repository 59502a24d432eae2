// Reads the log that file-shim.c writes: every change of a file below a directory, in order, and the markers of the test.

export type Operation =
  | { readonly type: 'create'; readonly path: string; readonly inode: number }
  | { readonly type: 'write'; readonly inode: number; readonly offset: number; readonly data: Buffer }
  | { readonly type: 'truncate'; readonly inode: number; readonly size: number }
  | { readonly type: 'sync'; readonly inode: number; readonly path: string }
  | { readonly type: 'sync directory'; readonly path: string }
  | { readonly type: 'rename' | 'link'; readonly path: string; readonly to: string }
  | { readonly type: 'unlink' | 'rmdir' | 'mkdir'; readonly path: string }
  | { readonly type: 'marker'; readonly text: string };

/** An operation, and the path that it was called with. `error`: the shim made it fail with this error number. */
export interface LoggedOperation {
  readonly operation: Operation;
  readonly path: string;
  readonly error: number;
}

const HEADER_BYTES = 40;
/** FALLOC_FL_KEEP_SIZE */
const KEEP_SIZE = 1;

export function* readOperationLog(log: Buffer): Generator<LoggedOperation> {
  for (let at = 0; at + HEADER_BYTES <= log.length; ) {
    const type = String.fromCharCode(log.readUInt32LE(at));
    const pathEnd = at + HEADER_BYTES + log.readUInt32LE(at + 4);
    const end = pathEnd + log.readUInt32LE(at + 8);
    const path = log.toString('utf8', at + HEADER_BYTES, pathEnd);
    const fields = {
      path,
      inode: Number(log.readBigUInt64LE(at + 16)),
      offset: Number(log.readBigInt64LE(at + 24)),
      length: Number(log.readBigInt64LE(at + 32)),
      data: log.subarray(pathEnd, end),
    };
    yield { operation: toOperation(type, fields), path, error: log.readUInt32LE(at + 12) };
    at = end;
  }
}

interface Fields {
  readonly path: string;
  readonly inode: number;
  readonly offset: number;
  readonly length: number;
  readonly data: Buffer;
}

function toOperation(type: string, { path, inode, offset, length, data }: Fields): Operation {
  switch (type) {
    case 'c':
      return { type: 'create', path, inode };
    case 'w':
      return { type: 'write', inode, offset, data };
    case 't':
      return { type: 'truncate', inode, size: offset };
    case 'f':
      // It adds zeros at the end of the file. Other modes are not used by DuckDB or Node.
      if ((data.length >= 4 ? data.readInt32LE(0) : 0) === KEEP_SIZE)
        return { type: 'write', inode, offset, data: Buffer.alloc(0) };
      return { type: 'write', inode, offset: offset + length, data: Buffer.alloc(0) };
    case 's':
      return { type: 'sync', inode, path };
    case 'd':
      return { type: 'sync directory', path };
    case 'r':
      return { type: 'rename', path, to: data.toString() };
    case 'l':
      return { type: 'link', path, to: data.toString() };
    case 'u':
      return { type: 'unlink', path };
    case 'x':
      return { type: 'rmdir', path };
    case 'm':
      return { type: 'mkdir', path };
    case '#':
      return { type: 'marker', text: path };
    default:
      throw new Error(`the log has an operation of the unknown type ${JSON.stringify(type)}`);
  }
}
