// npm run bench: measures, prints tables, and leaves a file with the raw numbers. README.md beside it says what the
// figures mean. --quick takes under a minute and leaves no file: it shows that everything runs, not how fast.
import { loadavg } from 'node:os';
import { LAYER_HEADER, layerRows, measureHttpLayer } from './http-layer.mjs';
import { measureHttpOverhead, OVERHEAD_HEADER, overheadRows } from './http-overhead.mjs';
import { INTAKE_HEADER, intakeRows, measureIntake } from './intake.mjs';
import { describeCommit, describeMachine, writeResults } from './results.mjs';
import { formatTable, makeProgress } from './table.mjs';
import { measureWarming, WARMING_HEADER, warmingRows } from './warming.mjs';
import { openWorkplace } from './workplace.mjs';

const SIZES = {
  full: {
    overhead: { recordsPerKind: 1_000_000, warmUps: 5, rounds: 61 },
    layer: { rounds: 7, secondsPerRound: 8, warmUpSeconds: 5 },
    intake: { seconds: 20, fileRecords: 500_000, fileRounds: 3, queries: 400 },
    warming: { entries: 10_000, recordsPerKind: 50_000, turns: 8, turnMs: 1000 },
  },
  quick: {
    overhead: { recordsPerKind: 50_000, warmUps: 2, rounds: 11 },
    layer: { rounds: 3, secondsPerRound: 2, warmUpSeconds: 1 },
    intake: { seconds: 4, fileRecords: 50_000, fileRounds: 1, queries: 50 },
    warming: { entries: 500, recordsPerKind: 10_000, turns: 3, turnMs: 500 },
  },
};

const unknown = process.argv.slice(2).filter(argument => argument !== '--quick');
if (unknown.length > 0) {
  process.stderr.write(`${unknown[0]} is not known; the only flag is --quick\n`);
  process.exit(2);
}
const quick = process.argv.includes('--quick');
const sizes = quick ? SIZES.quick : SIZES.full;
const machine = describeMachine();
const loadBefore = loadavg()[0];
const start = performance.now();
const progress = makeProgress(process.stderr);
const workplace = openWorkplace();

print(
  `${machine.cores} cores (${machine.cpu}), ${machine.arch}, Node ${machine.node}, commit ${describeCommit()}`,
);
if (loadBefore > 0.5) print(`the machine is busy already (load ${loadBefore.toFixed(2)}): expect noise`);

try {
  const overhead = await measureHttpOverhead(workplace, sizes.overhead, progress.report);
  progress.end();
  const { recordsPerKind, rounds } = sizes.overhead;
  print(
    `\nAn answer over HTTP against its SQL run directly: medians of ${rounds} turns, one caller, ` +
      `${recordsPerKind.toLocaleString('en')} edge and as many function_edge records`,
  );
  print(formatTable(OVERHEAD_HEADER, overheadRows(overhead)));

  const layer = await measureHttpLayer(workplace, sizes.layer, progress.report);
  progress.end();
  if (layer === undefined) print('Requests a second: left out, since wrk is missing');
  else {
    print(
      `Requests a second of a ${layer.bodyBytes} byte answer: medians of ${layer.rounds} rounds ` +
        `of ${layer.secondsPerRound} s, ${layer.connections} connections, ${layer.cores}`,
    );
    print(formatTable(LAYER_HEADER, layerRows(layer)));
  }

  const intake = await measureIntake(workplace, sizes.intake, progress.report);
  progress.end();
  print(
    `Logs in: records of ${intake.lineBytes} bytes, 8 connections, files of ${intake.file.records.toLocaleString('en')} records`,
  );
  print(formatTable(INTAKE_HEADER, intakeRows(intake)));

  const warming = await measureWarming(workplace, sizes.warming, progress.report);
  progress.end();
  print(
    `Callers' milliseconds with and without warming, ${warming.entries.toLocaleString('en')} live answers always due: ` +
      `${warming.turns} turns of ${warming.turnMs} ms each, one caller`,
  );
  print(formatTable(WARMING_HEADER, warmingRows(warming)));

  if (quick) print('Too short to keep: no result file. npm run bench makes one.');
  else
    print(
      `raw numbers: ${writeResults({
        date: new Date().toISOString(),
        commit: describeCommit(),
        command: 'npm run bench',
        machine,
        loadBefore,
        overhead,
        layer: layer ?? 'left out: wrk is missing',
        intake,
        warming,
      })}`,
    );
  print(`took ${Math.round((performance.now() - start) / 1000)} s`);
} finally {
  workplace.clear();
}

function print(text) {
  process.stdout.write(`${text}\n`);
}
