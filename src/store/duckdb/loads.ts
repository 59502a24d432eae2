// What `Store.append` has loaded. It prevents loading the same content twice, even after its records were removed.
import type { EarlierLoad, LoadIdentity } from '../store.ts';
import type { LoadEntry, Manifest } from './manifest.ts';

type Content = Pick<LoadIdentity, 'source' | 'digest'>;

export function isSame(one: Content, other: Content): boolean {
  return one.source === other.source && one.digest === other.digest;
}

/** Returns the earlier load of the same content. */
export function findLoad({ loads }: Manifest, content: Content): EarlierLoad | undefined {
  return loads.filter(load => isSame(load, content)).map(toEarlierLoad)[0];
}

/** Returns the earlier loads of this source (LoadIdentity.source) from files of this size. */
export function findLoadsOfSize({ loads }: Manifest, source: string, fileBytes: number): EarlierLoad[] {
  return loads.filter(load => load.source === source && load.fileBytes === fileBytes).map(toEarlierLoad);
}

function toEarlierLoad({ digest, records, loadedAt }: LoadEntry): EarlierLoad {
  return { digest, records, loadedAtMicros: loadedAt };
}
