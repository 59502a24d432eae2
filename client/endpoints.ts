// The types of the built-in endpoints. Generated from their definitions; `npx vitest run test/client/types.test.ts -u` updates it.

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
}
