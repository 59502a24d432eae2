// The suites of the benchmark in the order in which they run. `service` and `alerts` write to the large data set, so they are the last
// suites that use it.
import { alertsTables, measureAlerts } from './alerts.mjs';
import { growthTables, measureGrowth } from './growth.mjs';
import { httpLayerTables, measureHttpLayer } from './http-layer.mjs';
import { intakeTables, measureIntake } from './intake.mjs';
import { measurePeers, peersTables } from './peers.mjs';
import { measurePostgres, postgresTables } from './postgres.mjs';
import { measureSearch, searchTables } from './search.mjs';
import { measureService, serviceTables } from './service.mjs';
import { measureStudio, studioTables } from './studio.mjs';
import { measureWarming, warmingTables } from './warming.mjs';

/** @import { Context, Program, Report, SuiteResults, Table } from '../types.ts' */

/**
 * `needs` is a program without which the suite is skipped.
 * @typedef {{
 *   name: keyof SuiteResults,
 *   needs?: Program,
 *   measure: (context: Context, sizes: any, report: Report) => Promise<any>,
 *   tables: (result: any) => Table[],
 * }} Suite
 */

/** @type {Suite[]} */
export const SUITES = [
  { name: 'peers', measure: measurePeers, tables: peersTables },
  { name: 'postgres', needs: 'postgres', measure: measurePostgres, tables: postgresTables },
  { name: 'search', measure: measureSearch, tables: searchTables },
  { name: 'studio', measure: measureStudio, tables: studioTables },
  { name: 'growth', measure: measureGrowth, tables: growthTables },
  { name: 'service', measure: measureService, tables: serviceTables },
  { name: 'alerts', measure: measureAlerts, tables: alertsTables },
  { name: 'http-layer', needs: 'wrk', measure: measureHttpLayer, tables: httpLayerTables },
  { name: 'intake', measure: measureIntake, tables: intakeTables },
  { name: 'warming', measure: measureWarming, tables: warmingTables },
];
