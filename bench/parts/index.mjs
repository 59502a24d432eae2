// The parts of the benchmark, in the order in which they run: the last to use the large platform is the one that writes
// to it.
import { growthTables, measureGrowth } from './growth.mjs';
import { layerTables, measureHttpLayer } from './http-layer.mjs';
import { intakeTables, measureIntake } from './intake.mjs';
import { measurePeers, peersTables } from './peers.mjs';
import { measurePostgres, postgresTables } from './postgres.mjs';
import { measureService, serviceTables } from './service.mjs';
import { measureWarming, warmingTables } from './warming.mjs';

export const PARTS = [
  { name: 'peers', measure: measurePeers, tables: peersTables },
  { name: 'postgres', measure: measurePostgres, tables: postgresTables },
  { name: 'growth', measure: measureGrowth, tables: growthTables },
  { name: 'service', measure: measureService, tables: serviceTables },
  { name: 'http-layer', measure: measureHttpLayer, tables: layerTables },
  { name: 'intake', measure: measureIntake, tables: intakeTables },
  { name: 'warming', measure: measureWarming, tables: warmingTables },
];
