// The types of the endpoints that are part of Dendro, packs included. Generated from their definitions;
// `npx vitest run test/client/types.test.ts -u` updates it.

export interface BuiltInEndpoints {
  /** Execution statistics of one project's serverless functions per time bucket. */
  'functions.invocation-stats': {
    parameters: {
      /** Project reference. Only records of this project are counted. */
      project: string;
      /** Only records of this function. If absent or empty, all functions of the project. */
      function_id?: string | undefined;
      /** Length of the window before now. It also determines the bucket size. */
      interval?: '5min' | '15min' | '1hr' | '1day' | '7day' | undefined;
    };
    row: {
      /** Start of the bucket. */
      timestamp: number;
      /** Shortest execution time in milliseconds. */
      min_execution_time: number | null;
      /** Longest execution time in milliseconds. */
      max_execution_time: number | null;
      /** Average execution time in milliseconds. */
      avg_execution_time: number | null;
      /** 95th percentile of the execution time in milliseconds. */
      p95_execution_time: number | null;
      /** 99th percentile of the execution time in milliseconds. */
      p99_execution_time: number | null;
      /** Number of invocations. */
      count: number;
      /** Number of invocations whose response status was 400 or higher. */
      error_count: number;
    };
  };
  /** The newest edge log records of one project (at most 100) within a time range and the retention of its tier. */
  'logs.all': {
    parameters: {
      /** Project reference. Only records of this project are returned. */
      project: string;
      /** Tier of the project. Only records newer than now minus the tier's retention are returned. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent or empty, no upper bound. */
      iso_timestamp_end?: string | Date | undefined;
    };
    row: {
      /** Identifier of the record. */
      id: string;
      /** Time of the record. */
      timestamp: number;
      /** Message of the record. */
      event_message: string;
      /** Structured metadata of the record. */
      metadata: Record<string, unknown>;
    };
  };
  /** Number of API requests per time bucket and service area. */
  'usage.api-counts': {
    parameters: {
      /** Regular expression (RE2 syntax, unanchored). Only requests whose URL matches are counted. */
      project: string;
      /** Length of the window before now (60 minutes, 1 hour or 7 days). It also determines the bucket size. */
      interval: 'minutely' | 'hourly' | 'daily';
    };
    row: {
      /** Start of the bucket. */
      timestamp: string;
      /** Requests whose path contains /rest. */
      total_rest_requests: number;
      /** Requests whose path contains /storage. */
      total_storage_requests: number;
      /** Requests whose path contains /auth. */
      total_auth_requests: number;
      /** Requests whose path contains /realtime. */
      total_realtime_requests: number;
    };
  };
  /** What is different about the records that match a search expression, against the other records of the same time range or against the matching records of a second range. The field values whose share differs most, at most 100. */
  'logs.compare': {
    parameters: {
      /** Project reference. Only records of this project are counted. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Search expression, such as: timeout -retry "connection reset" status:>=500. If absent or empty, all records. */
      query?: string | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent, empty or later than now, now. */
      iso_timestamp_end?: string | Date | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are counted. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
      /** Start of a second time range (exclusive): compare with the matching records of that range. If absent or empty, with the records of the first range that do not match. */
      baseline_start?: string | Date | undefined;
      /** End of the second time range (inclusive). If absent or empty, the start of the first range. */
      baseline_end?: string | Date | undefined;
    };
    row: {
      /** Name of a field as in a search expression. */
      field: string;
      /** Value of the field. */
      value: string;
      /** Share of the matching records that have this value. */
      share: number;
      /** Share of the other records that have this value. */
      other_share: number;
      /** share minus other_share. Rows are ordered by its absolute value. */
      difference: number;
      /** Number of matching records that were read, at most 2,000. */
      sampled: number;
      /** Number of other records that were read, at most 2,000. */
      other_sampled: number;
      /** Number of matching records. */
      total: number;
      /** Number of other records. */
      other_total: number;
    };
  };
  /** The most frequent values of a field among the records that match a search expression, at most 50. */
  'logs.fields': {
    parameters: {
      /** Project reference. Only records of this project are counted. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Search expression, such as: timeout -retry "connection reset" status:>=500. If absent or empty, all records. */
      query?: string | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent or empty, no upper bound. */
      iso_timestamp_end?: string | Date | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are counted. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
      /** Field whose values are counted, such as status, function_id or request.headers.cf_ray. */
      field: string;
    };
    row: {
      /** Value of the field. */
      value: string;
      /** Number of records. */
      count: number;
    };
  };
  /** The number of records that match a search expression, by time bucket and by status class or level. */
  'logs.histogram': {
    parameters: {
      /** Project reference. Only records of this project are counted. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Search expression, such as: timeout -retry "connection reset" status:>=500. If absent or empty, all records. */
      query?: string | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent, empty or later than now, now. */
      iso_timestamp_end?: string | Date | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are counted. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
    };
    row: {
      /** Start of the bucket. */
      timestamp: number;
      /** Size of the bucket in seconds. */
      bucket_seconds: number;
      /** Class of the status, such as 5xx; of a kind without a status, the level in lower case; other if there is none. */
      category: string;
      /** Number of records. */
      count: number;
    };
  };
  /** The messages of the records that match a search expression, grouped with numbers, ids, addresses and quoted values masked, most frequent first, and their share in the period before, at most 100. */
  'logs.patterns': {
    parameters: {
      /** Project reference. Only records of this project are counted. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Search expression, such as: timeout -retry "connection reset" status:>=500. If absent or empty, all records. */
      query?: string | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent, empty or later than now, now. */
      iso_timestamp_end?: string | Date | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are counted. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
    };
    row: {
      /** Message with * in place of numbers, ids, addresses and quoted values; only its first 500 characters. */
      pattern: string;
      /** Number of records. */
      count: number;
      /** Records divided by all matching records of the range. */
      share: number;
      /** Number of errors: records with a status of 500 or more, or the level error or a more severe one. */
      error_count: number;
      /** Number of records in the period of the same length before the range. 0: the pattern is new. */
      count_before: number;
      /** Records divided by all matching records of the period before; null if there are none, such as before the retention. */
      share_before: number | null;
      /** Time of the oldest of these records in the range. */
      first: number;
      /** Time of the newest of these records in the range. */
      last: number;
      /** One of the messages; only its first 1,000 characters. */
      sample: string;
    };
  };
  /** One record by id and timestamp, with its neighbours in time of the same project, of one or all log kinds, newest first. */
  'logs.record': {
    parameters: {
      /** Project reference. Only records of this project are returned. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Identifier of the record. */
      id: string;
      /** Time of the record, as logs.search returns it or in ISO 8601. */
      timestamp: string | Date | number;
      /** How many older and how many newer records are returned with it. */
      neighbours?: number | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are returned. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
    };
    row: {
      /** Identifier of the record. */
      id: string;
      /** Time of the record. */
      timestamp: number;
      /** Message of the record. */
      event_message: string;
      /** Structured metadata of the record. */
      metadata: Record<string, unknown>;
      /** Log kind of the record. */
      kind: string;
      /** 0: the record; -1, -2 and so on: older ones; 1, 2 and so on: newer ones. */
      position: number;
    };
  };
  /** The records of one project, of one or all log kinds, that match a search expression, newest first, 100 per page. */
  'logs.search': {
    parameters: {
      /** Project reference. Only records of this project are returned. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Search expression, such as: timeout -retry "connection reset" status:>=500. If absent or empty, all records. */
      query?: string | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent or empty, no upper bound. */
      iso_timestamp_end?: string | Date | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are returned. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
      /** Where the page starts, from the header Dendro-Next-Cursor of the page before. If absent or empty, the first page. */
      cursor?: string | undefined;
    };
    row: {
      /** Identifier of the record. */
      id: string;
      /** Time of the record. */
      timestamp: number;
      /** Message of the record. */
      event_message: string;
      /** Structured metadata of the record. */
      metadata: Record<string, unknown>;
      /** Log kind of the record. */
      kind: string;
    };
  };
  /** The most frequent values of a field, or pairs of values of two fields, among the records that match a search expression, with their share of errors, at most 100. */
  'logs.top': {
    parameters: {
      /** Project reference. Only records of this project are counted. */
      project: string;
      /** Log kind, or all of them. */
      kind?: 'edge' | 'postgres' | 'function_edge' | 'function' | 'auth' | 'realtime' | 'storage' | 'rest' | 'pooler' | 'all' | undefined;
      /** Search expression, such as: timeout -retry "connection reset" status:>=500. If absent or empty, all records. */
      query?: string | undefined;
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent or empty, no upper bound. */
      iso_timestamp_end?: string | Date | undefined;
      /** Tier of the project. Only records newer than now minus the tier's retention are counted. */
      project_tier?: 'FREE' | 'PRO' | 'PAYG' | 'ENTERPRISE' | undefined;
      /** Field whose values are counted, such as path, function_id, kind or request.headers.cf_ray. */
      field: string;
      /** Another field. If it is given, each row has a pair of values. */
      second_field?: string | undefined;
    };
    row: {
      /** Value of the field. */
      value: string;
      /** Value of the second field; null if the record does not have it, or no second field is given. */
      second_value: string | null;
      /** Number of records. */
      count: number;
      /** Number of errors: records with a status of 500 or more, or the level error or a more severe one. */
      error_count: number;
      /** Errors divided by records. */
      error_share: number;
      /** Time of the oldest of these records. */
      first: number;
      /** Time of the newest of these records. */
      last: number;
    };
  };
  /** The projects that have records in a time range, those with the most records first, at most 100. */
  'projects.active': {
    parameters: {
      /** Only records later than this time (exclusive). If absent or empty, no lower bound. */
      iso_timestamp_start?: string | Date | undefined;
      /** Only records at or before this time. If absent or empty, no upper bound. */
      iso_timestamp_end?: string | Date | undefined;
      /** Only projects that start with this text. Upper and lower case differ. */
      prefix?: string | undefined;
    };
    row: {
      /** Project reference. */
      project: string;
      /** Number of records of all log kinds. */
      count: number;
      /** Time of the newest record. */
      newest: number;
    };
  };
  /** Projects with a burst of failed logins. */
  'alerts.failed-logins': {
    parameters: {
      /** Length of the time before now. */
      window?: '5min' | '15min' | '1hr' | undefined;
      /** The smallest number of failed logins that counts. */
      min_failures?: number | undefined;
    };
    row: {
      /** Project reference. */
      project: string;
      /** Number of requests to the path /token with a status from 400 to 499. */
      failures: number;
    };
  };
  /** Functions of which a large share of the invocations fails with a status of 500 or higher. */
  'alerts.function-errors': {
    parameters: {
      /** Length of the time before now. */
      window?: '5min' | '15min' | '1hr' | undefined;
      /** The smallest share that counts. */
      percent?: number | undefined;
      /** The smallest number of errors that counts. */
      min_errors?: number | undefined;
    };
    row: {
      /** Project reference. */
      project: string;
      /** The function. */
      function_id: string | null;
      /** Number of invocations. */
      invocations: number;
      /** Number of invocations with a status of 500 or higher. */
      errors: number;
      /** Share of the errors, in percent. */
      error_percent: number;
    };
  };
  /** Functions whose 95th percentile of the execution time is much longer than at the same time of the day before. */
  'alerts.function-slow': {
    parameters: {
      /** Length of the time before now, and before the same time of the day before. */
      window?: '15min' | '1hr' | undefined;
      /** The smallest p95 that counts, in percent of the day before. */
      percent?: number | undefined;
      /** The smallest p95 that counts, in milliseconds. */
      min_ms?: number | undefined;
      /** The smallest number of invocations that counts, on each day. */
      min_invocations?: number | undefined;
    };
    row: {
      /** Project reference. */
      project: string;
      /** The function. */
      function_id: string | null;
      /** Number of invocations. */
      invocations: number;
      /** 95th percentile of the execution time in milliseconds. */
      p95_ms: number;
      /** The same on the day before. */
      p95_before_ms: number;
    };
  };
  /** Log kinds that had records in the last days, and have no new ones. */
  'alerts.no-records': {
    parameters: {
      /** A kind without records for this long is not expected to have any; its alert resolves. */
      window?: '1day' | '7day' | undefined;
      /** The time without a record that counts. */
      minutes?: number | undefined;
    };
    row: {
      /** The log kind. */
      kind: string;
      /** Time of its newest record. */
      newest: string;
    };
  };
  /** Projects of which a large share of the API requests fails with a status of 500 or higher. */
  'alerts.project-5xx': {
    parameters: {
      /** Length of the time before now. */
      window?: '5min' | '15min' | '1hr' | undefined;
      /** The smallest share that counts. */
      percent?: number | undefined;
      /** The smallest number of errors that counts. */
      min_errors?: number | undefined;
    };
    row: {
      /** Project reference. */
      project: string;
      /** Number of requests. */
      requests: number;
      /** Number of requests with a status of 500 or higher. */
      errors: number;
      /** Share of the errors, in percent. */
      error_percent: number;
    };
  };
}
