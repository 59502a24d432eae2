// Compares decoders for OTLP bodies of 1,000 records, in turns, and prints the median CPU time of each. Needs a build.
// Usage: node bench/tools/compare-otlp-decoders.mjs [ROUNDS]
import { createFileRegistry, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import descriptor from 'protobufjs/ext/descriptor.js';
import { createOtlpBody, otlpTypes } from '../records/otlp-body.mjs';
import { decodeOtlpProtobuf, toIntakeRecords } from './dendro-modules.mjs';
import { median } from './statistics.mjs';

const RECORDS = 1000;
const REQUEST = 'ExportLogsServiceRequest';
const rounds = Number(process.argv[2] ?? 200);
const body = createOtlpBody(RECORDS);

const protobufjsType = otlpTypes.lookupType(REQUEST);
const descriptors = descriptor.FileDescriptorSet.encode(otlpTypes.toDescriptor('proto3')).finish();
const bufbuildType = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors)).getMessage(REQUEST);
if (bufbuildType === undefined) throw new Error(`the schema has no ${REQUEST}`);

/** The libraries only decode. Dendro's decoder also converts to the records that it validates. */
const decoders = {
  '@bufbuild/protobuf': () => fromBinary(bufbuildType, body),
  protobufjs: () => protobufjsType.decode(body),
  'Dendro, with conversion': () => [
    ...toIntakeRecords(decodeOtlpProtobuf(body), { sourceName: 'edge', allowedKinds: [] }),
  ],
};

const times = Object.keys(decoders).map(name => ({ name, samples: /** @type {number[]} */ ([]) }));
for (let round = 0; round < rounds; round++)
  for (const [index, decode] of Object.values(decoders).entries()) {
    const start = process.cpuUsage();
    decode();
    const { user, system } = process.cpuUsage(start);
    times[index].samples.push((user + system) / 1000);
  }
process.stdout.write(`${RECORDS} records, ${body.length} bytes, median of ${rounds} rounds\n`);
for (const { name, samples } of times) {
  const ms = median(samples);
  process.stdout.write(
    `${name}: ${ms.toFixed(2)} ms, ${Math.round(RECORDS / (ms / 1000))} records per second\n`,
  );
}
