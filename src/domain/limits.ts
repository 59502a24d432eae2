// The limits that clients and operators can reach and no flag changes, with their reasons. What only tunes one file is in that file.

const MIB = 1024 * 1024;

/** Tests set their own. */
export interface Limits {
  /** Of a result before compression. */
  readonly responseBytes: number;
  /** Of all responses that clients have not read yet. */
  readonly unsentBytes: number;
  /** Bytes per second that a client must read; 0: no minimum. */
  readonly minDownloadRate: number;
  /** Of received log data that is not in the store yet. */
  readonly intakeQueueBytes: number;
  /** The memory for remembering log requests for 10 minutes. */
  readonly idempotencyBytes: number;
  /** Bytes per second at which the body of a log request must arrive; 0: no minimum. */
  readonly minUploadRate: number;
}

export const LIMITS: Limits = {
  // A row can grow sixfold when it is encoded, and one record of 1 MiB must fit.
  responseBytes: 16 * MIB,
  unsentBytes: 128 * MIB,
  minDownloadRate: 32 * 1024,
  // More than twice the largest body: one sender gets at most half.
  intakeQueueBytes: 256 * MIB,
  idempotencyBytes: 128 * MIB, // about 260,000 requests
  minUploadRate: 1024,
};

// Requests and responses

export const MAX_URL_BYTES = 8 * 1024;
export const MAX_HEADER_BYTES = 16 * 1024;
/** Of the parameters in the body of a POST request. */
export const MAX_PARAMETER_BODY_BYTES = 64 * 1024;
/** How long the headers of a request, or a TLS handshake, may take. */
export const HEADERS_TIMEOUT_MS = 15_000;
/** How long a server that stops waits for running requests. */
export const SHUTDOWN_TIMEOUT_MS = 10_000;
/** File descriptors for everything that is not a connection: about 25 after startup, and some for each thread and open file. */
export const RESERVED_DESCRIPTORS = 48;
/** This many connections are allowed even if the process has too few file descriptors for them. */
export const MIN_CONNECTIONS = 8;
/**
 * How far a client may fall behind the minimum rate. The server sees how fast the operating system accepts bytes, not how fast
 * the client reads them: Linux accepts up to 4 MB ahead of the network, and the client's system buffers more. Once these buffers
 * are full, Linux accepts nothing until the client has read a large part of them.
 */
export const MAX_LAG_BYTES = 8 * 1024 * 1024;
/** At a high minimum rate, a response may still wait this long behind that of an earlier request of the connection. */
export const MIN_READ_DEADLINE_MS = 60_000;
/**
 * If all rows of a result together are larger than this, their memory is reserved in `unsentResponses` while they are encoded, so that
 * many large results at once cannot take all memory.
 */
export const MAX_SMALL_RESULT_BYTES = 256 * 1024;
/** The requests whose cache hits take the short path (http/cache-hit.ts). Together, both limit the memory to about 10 MiB. */
export const MAX_HIT_TARGET_LENGTH = 1_000;
export const MAX_HIT_REQUESTS = 4_000;
export const MAX_IDEMPOTENCY_KEY_LENGTH = 255;

// Tokens

/** Of a key in the environment, so that nobody guesses it. */
export const MIN_KEY_LENGTH = 16;
/** Wrong secrets of an address that are answered without a delay, for typing errors and dashboards with an old token. */
export const FREE_FAILURES = 10;
/** The time between two responses to an address. A failure adds it to a leaky bucket, which drains as time passes. */
export const FAILURE_INTERVAL_MS = 200;
/** Responses that may wait at a time: for one address, and for all. A waiting response holds a connection and its memory. */
export const MAX_WAITING_PER_ADDRESS = 50;
export const MAX_WAITING = 1_000;
/** Beyond this number, the address whose last failure is the oldest is forgotten. */
export const MAX_ADDRESSES = 10_000;

// Queries

/** Queries that run in parallel. Each holds a thread of Node's pool. */
export const QUERY_CONCURRENCY = 8;
/** Queries of one token that may wait. */
export const QUERY_QUEUE_LENGTH = 256;
/** A query that takes this long is logged. */
export const SLOW_QUERY_MS = 1000;
/** Of each cache entry: `Cache-Control: no-cache` runs its query at most this often. */
export const FORCED_REFRESH_INTERVAL_MS = 10_000;
/** How long a result without rows is cached: the first records should appear soon. */
export const EMPTY_LIFETIME_MS = 10_000;
/** Characters of a parameter, and of the project and the function id of a record, which parameters name (text-limit.ts). */
export const MAX_VALUE_LENGTH = 1024;
/**
 * A range has at most this many buckets. Each of BUCKET_STEPS is at most 2.5 times the one before, so a range has at least 48
 * buckets, unless it is shorter than 48 µs.
 */
export const MAX_BUCKETS = 120n;
/**
 * The files of an endpoint. The shipped definitions have up to 3 KiB, and the time of the YAML parser can grow with the square of the
 * size.
 */
export const MAX_DEFINITION_BYTES = 32 * 1024;
export const MAX_SQL_BYTES = 1024 * 1024;
/** Words and phrases that must occur. Each has its own condition in the SQL, so there is a maximum. */
export const MAX_SEARCH_WORDS = 10;
/** Conditions on paths of keys. A search parses the metadata of a record once or more for each of them, and for each key. */
export const MAX_SEARCH_PATHS = 10;
export const MAX_PATH_KEYS = 10;
/** Parentheses inside parentheses. */
export const MAX_SEARCH_DEPTH = 20;
/**
 * The maximum length of a word, a phrase, or a value with wildcards. In the regular expression of a search, a word, a phrase and
 * the text after a wildcard can match at every position of a text. A longer term can exceed the memory of RE2's automaton: RE2
 * then takes seconds for one record of 1 MiB, and a query cannot be cancelled within a block of records. A value without
 * wildcards is compared with the whole text, so it has no such limit.
 */
export const MAX_TERM_CHARACTERS = 128;
/** Wildcards in one value. */
export const MAX_WILDCARDS = 4;
/**
 * The maximum number of wildcards in all included values of a field together, and in all excluded ones. The included values of a
 * field are one regular expression, and so are the excluded ones. The automaton of each tracks the progress in every value. On a
 * block of 2,048 paths of 100 bytes, DuckDB takes up to 30 ms for 16 wildcards, and 3 s for
 * 70 values with 4 wildcards each.
 */
export const MAX_FIELD_WILDCARDS = 16;
/**
 * An expression is rejected above MAX_PATTERN_SIZE; with few choices, above MAX_SIMPLE_SIZE, because then its states fit into RE2's
 * memory. bench/pattern-cost.mjs searches for the most expensive expressions that are allowed: they take about 10 s for 2,048
 * texts of 2,048 bytes.
 */
export const MAX_PATTERN_SIZE = 60;
export const MAX_SIMPLE_SIZE = 150;
export const MAX_SIMPLE_CHOICES = 8;
/** Characters of a query of Studio. The parser takes milliseconds for as many. */
export const MAX_STUDIO_QUERY_LENGTH = 32 * 1024;
/** Expressions inside expressions, in a query of Studio. */
export const MAX_STUDIO_DEPTH = 32;
/** Values and operations in a query of Studio, as often as its SQL has them: an alias or an operation can repeat a part. */
export const MAX_STUDIO_PARTS = 2000;
/** Uses of fields in a query of Studio. The metadata of a record is parsed for each of them. */
export const MAX_STUDIO_FIELDS = 32;
/** Patterns, `lower` and `upper` in a query of Studio: each can read a whole message or value of 1 MiB. As many as in a search, which reads two texts. */
export const MAX_STUDIO_PATTERNS = 2 * MAX_SEARCH_WORDS;
/** Uses of `lower` and `upper` in a query of Studio. DuckDB holds a copy of the texts of a block for each, outside of its memory limit. */
export const MAX_STUDIO_CASE_CHANGES = 4;

// Records

/** The limit for a body, both as sent and decompressed. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** UTF-8 bytes of id, project, message and metadata together. */
export const MAX_RECORD_BYTES = 1024 * 1024;
/** Nesting of objects and arrays. The record itself is the first level. */
export const MAX_RECORD_LEVELS = 64;
/** Tolerance for sender clocks that run ahead. A timestamp further ahead would stay the newest in every query for too long. */
export const MAX_AHEAD_MICROS = 3_600_000_000;
/** Records of one OTLP request. */
export const MAX_OTLP_RECORDS = 1024 * 1024;
/** The same limit as for a JSON body (intake/decode-body.ts): an empty value takes only 2 bytes in the body, and far more in memory. */
export const MAX_OTLP_VALUES = 4 * 1024 * 1024;
/** A longer line is skipped and counts as one rejected record. */
export const MAX_FILE_LINE_BYTES = 16 * 1024 * 1024;
/** A JSON file is read into memory as a whole and takes several times its size there. V8 limits a string to 512 MiB. */
export const MAX_JSON_FILE_BYTES = 256 * 1024 * 1024;
/** Rejected records that a response of the intake describes; it counts the others. */
export const MAX_REPORTED_ERRORS = 20;
/** How long a log request is remembered, so that a repeat is recognized. */
export const IDEMPOTENCY_TTL_MS = 600_000;
/**
 * The heap limit of a parser thread. It is a last resort: V8 may crash the whole process when a worker reaches it. The limits on values
 * in decode-body.ts and otlp-protobuf.ts keep bodies far below it.
 */
export const MAX_PARSER_HEAP_MIB = 512;
/**
 * For one body. Half a million tiny records take 10 s on a busy machine. Without a time limit, millions of invalid lines blocked the pool
 * for minutes.
 */
export const PARSE_TIMEOUT_MS = 40_000;
/** Projects with series of their own in the metrics; all others are one series without a name. */
export const MAX_METRIC_PROJECTS = 1_000;
/** Beyond this size, the quarantine begins a new file. */
export const MAX_QUARANTINE_FILE_BYTES = 32 * 1024 * 1024;
/** If all active memtables together are larger than this, the largest is flushed: nine nearly full ones would not fit in memory. */
export const MAX_MEMTABLE_BYTES = 160 * 1024 * 1024;
/** A memtable is full at this size, because it is in memory. Large records reach it before ROW_GROUP_ROWS. */
export const MAX_SORT_BYTES = 128 * 1024 * 1024;
