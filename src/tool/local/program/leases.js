// SPDX-License-Identifier: Apache-2.0
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { Backlogs } = require('./backlog.js');
const { dynamodbClient, kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { readLeases } = require('./lease_table.js');
const { runningState } = require('./state.js');
const { listStreams } = require('./streams.js');
const { formatTable, formatTsv } = require('./table.js');

// The lease table does not name its stream.
async function streamOf(kinesis, application, named) {
  const all = await explained({}, () => listStreams(kinesis));
  const stream = named ?? (all.includes(application) || all.length !== 1 ? application : all[0]);
  if (all.includes(stream)) return stream;
  const there = all.length > 0 ? `there are ${all.join(', ')}` : 'there is none yet';
  throw new Failure(named === undefined ? `name the stream that ${application} reads with --stream; ${there}`
    : `there is no stream ${named}; ${there}`);
}

// For people: sequence numbers differ in their last digits.
const shortened = (sequence) => (sequence.length > 20 ? `…${sequence.slice(-14)}` : sequence);
const seconds = (milliseconds) => `${(Math.max(0, milliseconds) / 1000).toFixed(1)} s`;

function rowFor({ shard, owner, counter, sequence, sub }, backlog, now) {
  const oldest = backlog?.oldest === undefined ? '-' : seconds(now - backlog.oldest);
  return [shard, owner, counter, `${shortened(sequence)}/${sub}`, backlog?.records.toString() ?? '-', oldest];
}

// In the order that scripts/demo reads.
function tsvFor({ shard, owner, counter, sequence, sub }, backlog, now) {
  const oldest = backlog?.oldest === undefined ? '-' : `${Math.max(0, now - backlog.oldest)}`;
  return [shard, sequence, sub, owner, counter, backlog?.records.toString() ?? '-', oldest];
}

// All of it as it was at one moment: the leases, which one call reads, and of the records those that had arrived then.
// Reading the records takes a while after that, when there are many.
async function picture(dynamodb, backlogs, application, tsv) {
  const leases = await readLeases(dynamodb, application);
  if (leases === undefined) return undefined;
  const now = Date.now();
  await explained({}, () => backlogs.read(leases, now));
  const all = leases.map((lease) => [lease, backlogs.of(lease, now)]);
  if (tsv) return formatTsv(all.map(([lease, backlog]) => tsvFor(lease, backlog, now)));
  return `at ${new Date(now).toLocaleTimeString('en-GB')}\n` +
    formatTable(['shard', 'owner', 'counter', 'checkpoint', 'lag', 'oldest'],
      all.map(([lease, backlog]) => rowFor(lease, backlog, now)), [2, 4, 5]);
}

async function printLeases({ application, stream: named, watch, tsv, ...options }) {
  const state = runningState(options);
  const dynamodb = dynamodbClient(state);
  const kinesis = kinesisClient(state);
  const stream = await streamOf(kinesis, application, named);
  const backlogs = new Backlogs(kinesis, stream);
  const isRedrawn = watch && process.stdout.isTTY;
  for (;;) {
    const text = await picture(dynamodb, backlogs, application, tsv);
    if (text === undefined && !watch) throw new Failure(`there is no lease table ${application}; the daemon creates it`);
    if (isRedrawn) process.stdout.write('\x1b[H\x1b[J');
    if (!tsv) process.stdout.write(`application ${application}, stream ${stream}, `);
    process.stdout.write(text ?? 'no lease table yet\n');
    if (!watch) return;
    await sleep(1000);
    runningState(options); // never another process that got the port meanwhile
  }
}

module.exports = { printLeases };
