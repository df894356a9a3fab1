// SPDX-License-Identifier: Apache-2.0
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { Backlogs } = require('./backlog.js');
const { dynamodbClient, kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { readRows } = require('./lease_table.js');
const { runningState } = require('./state.js');
const { unleased } = require('./shards.js');
const { listShards, listStreams } = require('./streams.js');

// The lease table does not name its stream.
async function streamOf(kinesis, application, named) {
  const all = await explained({}, () => listStreams(kinesis));
  const stream = named ?? (all.includes(application) || all.length !== 1 ? application : all[0]);
  if (all.includes(stream)) return stream;
  const there = all.length > 0 ? `there are ${all.join(', ')}` : 'there is none yet';
  throw new Failure(named === undefined ? `name the stream that ${application} reads with --stream; ${there}`
    : `there is no stream ${named}; ${there}`);
}

// The KCL may keep other things in this table too; only leases have a checkpoint.
const leasesIn = (rows) => rows.filter(({ checkpoint }) => checkpoint !== undefined)
  .map(({ leaseKey, checkpoint }) => ({ shard: leaseKey.S, sequence: checkpoint.S }));

// All of it as it was at one moment: the rows, which one call reads, and of the records those that had arrived then.
// Reading the records takes a while after that, when there are many.
async function picture(rows, backlogs) {
  const leases = leasesIn(rows);
  const now = Date.now();
  await explained({}, () => backlogs.read(leases, now));
  const waiting = leases.map((lease) => [lease.shard, backlogs.of(lease, now)]).filter(([, backlog]) => backlog !== undefined)
    .map(([shard, { records, oldest }]) => [shard, { records, oldest: oldest && Math.max(0, Math.round(now - oldest)) }]);
  return { Items: rows, kclxxBacklogs: Object.fromEntries(waiting) };
}

// A line of JSON for each time that the table is read; kclxx makes a table for people of it.
async function printLeases({ application, stream: named, watch, ...options }) {
  const state = runningState(options);
  const dynamodb = dynamodbClient(state);
  const kinesis = kinesisClient(state);
  const stream = await streamOf(kinesis, application, named);
  const backlogs = new Backlogs(kinesis, stream);
  for (;;) {
    const rows = await readRows(dynamodb, application);
    if (rows === undefined && !watch) throw new Failure(`there is no lease table ${application}; the daemon creates it`);
    const kclxxUnleased = rows === undefined ? [] : unleased(await explained({}, () => listShards(kinesis, stream)), leasesIn(rows));
    process.stdout.write(`${JSON.stringify({ stream, kclxxUnleased, ...await picture(rows ?? [], backlogs) })}\n`);
    if (!watch) return;
    await sleep(1000);
    runningState(options); // never another process that got the port meanwhile
  }
}

module.exports = { printLeases };
