// A real HTTP server that receives notifications. A test decides how it responds.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the tests check the content
  readonly body: any;
}

/** A status, or `hang`: never respond. */
type Behaviour = number | 'hang';

export class TestReceiver {
  /** Those that it has answered, or that hang: time may pass without stopping the others. */
  readonly requests: Received[] = [];
  behaviour: Behaviour = 200;
  /** Requests that get the status 400. */
  refuse: (request: Received) => boolean = () => false;
  /** Called before a response is sent. */
  onRequest = () => {};
  url = '';
  readonly #server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const { url: path = '', headers } = request;
    const received = { path, headers, text, body: JSON.parse(text) };
    this.onRequest();
    if (this.behaviour === 'hang') {
      this.requests.push(received);
      return;
    }
    response.once('close', () => this.requests.push(received));
    if (this.behaviour >= 300 && this.behaviour < 400)
      response.setHeader('location', `${this.url}/elsewhere`);
    response.writeHead(this.refuse(received) ? 400 : this.behaviour).end('a secret response');
  });

  static async start(): Promise<TestReceiver> {
    const receiver = new TestReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    receiver.url = `http://127.0.0.1:${(receiver.#server.address() as AddressInfo).port}`;
    return receiver;
  }

  /** The instances of all requests: state and key. */
  instances(): string[] {
    return this.requests.flatMap(({ body }) =>
      body.instances.map(
        (each: { state: string; key: object }) => `${each.state} ${Object.values(each.key)}`,
      ),
    );
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
