// One process that stores records as the server does, flush by flush, and prints how much CPU time the verification takes, which
// reads each new part back from the disk. Nothing else runs in the process meanwhile.
// Usage: node verification-process.mjs DATA-DIRECTORY FLUSHES RECORDS-PER-FLUSH
import { createLines } from '../records/sent-records.mjs';
import { createServeConfig, openStore, PartWriter, parseBody } from '../tools/dendro-modules.mjs';

const [dataDirectory, flushes, recordsPerFlush] = process.argv.slice(2);
const RECORDS_PER_BATCH = 4_000;

let verificationMicros = 0;
const { verify } = PartWriter.prototype;
/** @param {Parameters<typeof verify>} args */
PartWriter.prototype.verify = async function measured(...args) {
  const start = process.cpuUsage();
  try {
    return await verify.apply(this, args);
  } finally {
    verificationMicros += sumOf(process.cpuUsage(start));
  }
};

const config = createServeConfig(['--data', dataDirectory], 'this-process-has-no-listener');
const store = await openStore(config.store);
let records = 0;
for (let flush = 0; flush < Number(flushes); flush++) {
  for (let sent = 0; sent < Number(recordsPerFlush); sent += RECORDS_PER_BATCH) {
    await store.apply({ kind: 'edge', count: RECORDS_PER_BATCH, lines: parse(), firstSequence: records });
    records += RECORDS_PER_BATCH;
  }
  await store.flush(['edge']);
}
if (store.flushedUpTo('edge') !== records) throw new Error('not all records were flushed');
await store.close();
process.stdout.write(
  `result: ${JSON.stringify({ records, cpuMicrosPerRecord: verificationMicros / records })}\n`,
);

function parse() {
  const { batches } = parseBody({
    data: Buffer.from(createLines(RECORDS_PER_BATCH).join('')),
    contentCoding: '',
    format: 'ndjson',
    kind: 'edge',
    context: { nowMicros: Date.now() * 1000, retentionDays: 90 },
    needsDeduplication: false,
  });
  const [batch] = batches;
  if (batch?.accepted !== RECORDS_PER_BATCH) throw new Error('not all records were accepted');
  return batch.lines;
}

/** @param {NodeJS.CpuUsage} usage */
function sumOf({ user, system }) {
  return user + system;
}
