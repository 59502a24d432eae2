// How large and how long everything is: in full, and just so that everything runs.

export const SIZES = {
  full: {
    /** After so long without a new record, the store merges what it would not otherwise. */
    platform: { perKind: 5_000_000, quietSeconds: 32 },
    peers: { warmUps: 2, rounds: 31, minRounds: 9, limitMs: 4000 },
    postgres: { quietSeconds: 32, warmUps: 1, rounds: 15, minRounds: 5, limitMs: 5000 },
    growth: {
      perKind: [500_000, 5_000_000, 15_000_000],
      quietSeconds: 32,
      warmUps: 3,
      rounds: 31,
      minRounds: 9,
      limitMs: 3000,
    },
    service: { starts: 5, oneClientCalls: 300, clients: 50, seconds: 15, intakeSeconds: 15 },
    'http-layer': { rounds: 7, secondsPerRound: 4, warmUpSeconds: 3 },
    intake: { seconds: 15, fileRecords: 1_000_000, fileRounds: 2, queries: 300 },
    warming: { entries: 10_000, recordsPerKind: 50_000, turns: 6, turnMs: 1000 },
  },
  quick: {
    platform: { perKind: 20_000 },
    peers: { warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    postgres: { warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    growth: { perKind: [5_000, 20_000, 60_000], warmUps: 1, rounds: 3, minRounds: 3, limitMs: 1000 },
    service: { starts: 1, oneClientCalls: 30, clients: 50, seconds: 2, intakeSeconds: 3 },
    'http-layer': { rounds: 1, secondsPerRound: 1, warmUpSeconds: 1 },
    intake: { seconds: 3, fileRecords: 20_000, fileRounds: 1, queries: 30 },
    warming: { entries: 300, recordsPerKind: 5_000, turns: 3, turnMs: 800 },
  },
};
