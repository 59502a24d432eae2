// The last response of each URL. A request sends the ETag of the cached response; if the server returns 304, its text is reused.

export interface CachedResponse {
  readonly etag: string;
  readonly text: string;
}

/** Bounded in characters. The least recently used responses are removed first. */
export class ResponseCache {
  readonly #maxCharacters: number;
  readonly #responses = new Map<string, CachedResponse>();
  #characters = 0;

  constructor(maxCharacters: number) {
    this.#maxCharacters = maxCharacters;
  }

  get(url: string): CachedResponse | undefined {
    const response = this.#responses.get(url);
    if (response === undefined) return undefined;
    // A Map keeps the order of insertion, so this makes the response the most recently used one.
    this.#responses.delete(url);
    this.#responses.set(url, response);
    return response;
  }

  set(url: string, response: CachedResponse): void {
    this.#delete(url);
    if (sizeOf(url, response) > this.#maxCharacters) return;
    this.#responses.set(url, response);
    this.#characters += sizeOf(url, response);
    for (const leastRecentlyUsed of this.#responses.keys()) {
      if (this.#characters <= this.#maxCharacters) return;
      this.#delete(leastRecentlyUsed);
    }
  }

  #delete(url: string): void {
    const response = this.#responses.get(url);
    if (response === undefined) return;
    this.#responses.delete(url);
    this.#characters -= sizeOf(url, response);
  }
}

function sizeOf(url: string, { etag, text }: CachedResponse): number {
  return url.length + etag.length + text.length;
}
