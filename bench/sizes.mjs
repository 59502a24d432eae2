// Sizes and durations of every suite: `full` for figures, `quick` to check that everything runs.

/** @typedef {typeof SIZES.full} Sizes */

/**
 * The store compacts its youngest parts only after 30 s without new records (src/store/duckdb/rewriter.ts). Loading waits
 * longer than that, so that the figures are those of a store at rest. `quick` does not wait.
 */
const QUIET_SECONDS = 32;

export const SIZES = {
  full: {
    largeDataset: { perKind: 5_000_000, quietSeconds: QUIET_SECONDS },
    peers: { warmUps: 2, rounds: 31, minRounds: 9, limitMs: 4000 },
    postgres: { quietSeconds: QUIET_SECONDS, warmUps: 1, rounds: 15, minRounds: 5, limitMs: 5000 },
    search: {
      postgresShare: 0.2,
      quietSeconds: QUIET_SECONDS,
      warmUps: 1,
      rounds: 15,
      minRounds: 3,
      limitMs: 5000,
    },
    studio: { warmUps: 2, rounds: 31, minRounds: 9, limitMs: 4000 },
    growth: {
      perKind: [500_000, 5_000_000, 15_000_000],
      quietSeconds: QUIET_SECONDS,
      warmUps: 3,
      rounds: 31,
      minRounds: 9,
      limitMs: 3000,
    },
    service: { starts: 5, oneClientRequests: 300, clients: 50, seconds: 15, intakeSeconds: 15 },
    alerts: { rounds: 3, seconds: 60 },
    'http-layer': { rounds: 7, secondsPerRound: 4, warmUpSeconds: 3 },
    intake: { seconds: 15, fileRecords: 1_000_000, fileRounds: 2, requests: 300 },
    warming: { entries: 10_000, recordsPerKind: 50_000, rounds: 6, roundMs: 1000 },
  },
  quick: {
    largeDataset: { perKind: 20_000, quietSeconds: 0 },
    peers: { warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    postgres: { quietSeconds: 0, warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    search: { postgresShare: 0.2, quietSeconds: 0, warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    studio: { warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    growth: {
      perKind: [5_000, 20_000, 60_000],
      quietSeconds: 0,
      warmUps: 1,
      rounds: 3,
      minRounds: 3,
      limitMs: 1000,
    },
    service: { starts: 1, oneClientRequests: 30, clients: 50, seconds: 2, intakeSeconds: 3 },
    alerts: { rounds: 1, seconds: 3 },
    'http-layer': { rounds: 1, secondsPerRound: 1, warmUpSeconds: 1 },
    intake: { seconds: 3, fileRecords: 20_000, fileRounds: 1, requests: 30 },
    warming: { entries: 300, recordsPerKind: 5_000, rounds: 3, roundMs: 800 },
  },
};
