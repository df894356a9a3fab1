// SPDX-License-Identifier: Apache-2.0
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { Backlogs } = require('./backlog.js');
const { dynamodbClient, kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { readRows } = require('./lease_table.js');
const { runningState } = require('./state.js');
const { parentsOf } = require('./shards.js');
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

// All of it as it was at one moment: the rows, which one call reads, and of the records those that had arrived then.
// Reading the records takes a while after that, when there are many.
async function picture(rows, backlogs) {
  // The KCL may keep other things in this table too; only leases have a checkpoint.
  const leases = rows.filter(({ checkpoint }) => checkpoint !== undefined)
    .map(({ leaseKey, checkpoint }) => ({ shard: leaseKey.S, sequence: checkpoint.S }));
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
    const kclxxUnleased = rows === undefined ? [] : unleased(await explained({}, () => listShards(kinesis, stream)), rows);
    process.stdout.write(`${JSON.stringify({ stream, kclxxUnleased, ...await picture(rows ?? [], backlogs) })}\n`);
    if (!watch) return;
    await sleep(1000);
    runningState(options); // never another process that got the port meanwhile
  }
}

// Shards that no worker reads: without a lease, and no lease of a descendant tells that they were read, none of an ancestor
// that the KCL will make theirs when that one has ended.
function unleased(shards, rows) {
  const byId = new Map(shards.map((shard) => [shard.ShardId, shard]));
  const leases = new Map(rows.filter((row) => row.checkpoint !== undefined).map((row) => [row.leaseKey.S, row.checkpoint.S]));
  const ancestors = (shard) => parentsOf(shard).filter((id) => byId.has(id)).flatMap((id) => [id, ...ancestors(byId.get(id))]);
  const isRead = new Set([...leases.keys()].filter((id) => byId.has(id)).flatMap((id) => ancestors(byId.get(id))));
  return shards.filter((shard) => !leases.has(shard.ShardId) && !isRead.has(shard.ShardId)
    && !ancestors(shard).some((id) => leases.has(id) && leases.get(id) !== 'SHARD_END')).map((shard) => shard.ShardId);
}

module.exports = { printLeases, unleased };
