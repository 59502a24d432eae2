// Random requests that vary every part of a request: for tests of what no client may cause.
import fc from 'fast-check';
import { API_KEY } from './app.ts';
import { expression, headerText, targetText, timestamp, value } from './random-value.ts';

type Header = readonly [name: string, value: string];

export interface RandomRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly Header[];
  readonly body: string;
  readonly access: Access;
}

/** Serializes a request, one byte per character. */
export function toBytes({ method, target, headers, body }: RandomRequest): Buffer {
  const framing: Header[] = [['Host', 'localhost']];
  if (body !== '') framing.push(['Content-Length', String(body.length)]);
  const lines = [...framing, ...headers].map(([name, text]) => `${name}: ${text}\r\n`);
  return Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`, 'latin1');
}

const words = (text: string) => text.split(' ');

const NAMES = words(
  'logs.all usage.api-counts functions.invocation-stats 36d4086c-7022-4186-9a0f-e33ec7d730da ' +
    '0FBECA51-CAAA-4F7D-83F0-8110AA708839 logs%2eall logs.all%00 logs.all:x no.such %zz % ..',
);
const name = fc.constantFrom(...NAMES);

const path = fc.oneof(
  { weight: 6, arbitrary: name.map(text => `/api/endpoints/query/${text}`) },
  { weight: 1, arbitrary: name.map(text => `http://example.org/api/endpoints/query/${text}`) },
  { weight: 1, arbitrary: targetText.map(text => `/api/endpoints/query/${text}`) },
  { weight: 1, arbitrary: targetText.map(text => `/${text}`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...words('/api/endpoints /health /openapi.json / * // /api/endpoints/query/')),
  },
);

/** Plausible parameters, so that some requests return rows. */
const likelyQuery = fc
  .record({
    project: fc.oneof(fc.constant('alpha'), fc.constantFrom('alpha', 'beta', 'alpha|beta', '.*'), expression),
    project_tier: fc.constantFrom('FREE', 'PRO', 'x'),
    iso_timestamp_start: fc.oneof(
      { weight: 3, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: timestamp },
    ),
    interval: fc.constantFrom('daily', 'minutely', '7day', '5min'),
    format: fc.constantFrom('json', 'csv', 'ndjson', ''),
  })
  .map(parameters => new URLSearchParams(parameters).toString());

const PARAMETERS = words(
  'project project project interval interval function_id project_tier iso_timestamp_start iso_timestamp_end format ' +
    'sql now __proto__ constructor X-API-KEY token',
);

const anyQuery = fc
  .array(
    fc.record({ key: fc.constantFrom(...PARAMETERS, ''), text: fc.oneof(value, fc.constant(API_KEY)) }),
    { maxLength: 6 },
  )
  .map(pairs => {
    const parameters = new URLSearchParams();
    for (const { key, text } of pairs) parameters.append(key, text);
    return parameters.toString();
  });

const query = fc.oneof(likelyQuery, likelyQuery, anyQuery, targetText);

const headerOf = (names: string, texts: fc.Arbitrary<string>): fc.Arbitrary<Header> =>
  fc.tuple(fc.constantFrom(...words(names)), texts);

const header = fc.oneof(
  headerOf('Accept', fc.constantFrom('text/csv', '*/*', 'text/*;q=0.5, */*;q=0.1', 'image/png', ';q=1,,')),
  headerOf('Accept', headerText),
  headerOf('Content-Type', fc.constantFrom('application/json; charset=utf-8', 'text/plain', '')),
  headerOf('Cache-Control If-None-Match', fc.constantFrom('no-cache', '*', '"x"')),
  // No Accept-Encoding, because the test searches the bodies for rows.
  headerOf('Range If-None-Match Cache-Control Origin X-Forwarded-For Upgrade Cookie', headerText),
);

/** What the token of a request allows. Undefined: the request must get no rows. */
type Access = 'all' | 'pinned' | undefined;

interface Credentials {
  readonly access: Access;
  readonly headers: readonly Header[];
}

/** Secrets that may see rows: of all projects or of one. `rejected` are valid secrets that may not. */
export interface Secrets {
  readonly all: readonly string[];
  readonly pinned: readonly string[];
  readonly rejected: readonly string[];
}

/** Sends the secret in one of the ways that a client may use. */
const inEither = (secret: fc.Arbitrary<string>, access: Access): fc.Arbitrary<Credentials> =>
  secret.chain(text =>
    fc.constantFrom<Credentials>(
      { access, headers: [['X-API-KEY', text]] },
      { access, headers: [['x-api-key', text]] },
      { access, headers: [['Authorization', `Bearer ${text}`]] },
      {
        access,
        headers: [
          ['X-API-KEY', ''],
          ['Authorization', `bearer ${text}`],
        ],
      },
    ),
  );

const WRONG_SECRETS = [
  '',
  ' ',
  `${API_KEY}x`,
  API_KEY.slice(1),
  `${API_KEY} x`,
  `${API_KEY},${API_KEY}`,
].concat(['Bearer', `Bearer ${API_KEY}`, 'dnd_', '__proto__']);
const wrongSecret = fc
  .oneof(
    fc.constantFrom(...WRONG_SECRETS),
    headerText,
    headerText.map(text => `dnd_${text}`),
  )
  .filter(secret => secret.trim() !== API_KEY);

const MISPLACED_HEADERS: Header[][] = [
  [],
  [
    ['X-API-KEY', 'wrong'],
    ['Authorization', `Bearer ${API_KEY}`],
  ],
  [
    ['X-API-KEY', API_KEY],
    ['X-API-KEY', API_KEY],
  ],
  [['Authorization', `Basic ${API_KEY}`]],
  [['Cookie', `X-API-KEY=${API_KEY}`]],
];

const credentialsOf = ({ all, pinned, rejected }: Secrets): fc.Arbitrary<Credentials> =>
  fc.oneof(
    { weight: 3, arbitrary: inEither(fc.constantFrom(...all), 'all') },
    { weight: 2, arbitrary: inEither(fc.constantFrom(...pinned), 'pinned') },
    { weight: 1, arbitrary: inEither(fc.oneof(fc.constantFrom(...rejected), wrongSecret), undefined) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(...MISPLACED_HEADERS).map(headers => ({ access: undefined, headers })),
    },
  );

const body = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.json().map(text => Buffer.from(text).toString('latin1')) },
  { weight: 1, arbitrary: headerText },
);

export const randomRequest = (secrets: Secrets): fc.Arbitrary<RandomRequest> =>
  fc
    .record({
      method: fc.constantFrom(
        ...words('GET GET GET GET GET GET HEAD POST PUT DELETE OPTIONS PATCH TRACE PURGE'),
      ),
      path,
      query,
      credentials: credentialsOf(secrets),
      headers: fc.array(header, { maxLength: 3 }),
      body,
    })
    .map(({ method, path: place, query: search, credentials, headers, body: content }) => ({
      method,
      target: `${place}?${search}`,
      headers: [...credentials.headers, ...headers],
      body: content,
      access: credentials.access,
    }));
