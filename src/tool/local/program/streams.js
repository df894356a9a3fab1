// SPDX-License-Identifier: Apache-2.0
'use strict';
const { awaitState, kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { expectNeighbours, inOrder, isOpen, middleOf, openShard, parentsOf, rangeOf } = require('./shards.js');
const { runningState } = require('./state.js');

const noStream = (stream) => ({
  ResourceNotFoundException: `there is no stream ${stream}; kclxx local create-stream ${stream} makes it`,
});

const awaitStream = (kinesis, stream) => awaitState(() => kinesis('DescribeStreamSummary', { StreamName: stream }),
  ({ StreamDescriptionSummary }) => StreamDescriptionSummary.StreamStatus === 'ACTIVE');

function checkName(stream) {
  if (/^[\w.-]{1,128}$/.test(stream)) return;
  throw new Failure(`'${stream}' is no name of a stream: 1 to 128 letters, digits, '_', '-' and '.'`);
}

async function createStream({ stream, shards, ...options }) {
  checkName(stream);
  const kinesis = kinesisClient(runningState(options));
  await explained({ ResourceInUseException: `there is a stream ${stream} already` }, () =>
    kinesis('CreateStream', { StreamName: stream, ShardCount: Number(shards) }));
  await awaitStream(kinesis, stream);
}

async function listShards(kinesis, stream) {
  checkName(stream);
  const all = [];
  let next;
  do {
    const page = await explained(noStream(stream), () =>
      kinesis('ListShards', next === undefined ? { StreamName: stream } : { NextToken: next }));
    all.push(...page.Shards);
    next = page.NextToken;
  } while (next !== undefined);
  return all.sort((a, b) => (a.ShardId < b.ShardId ? -1 : 1));
}

async function listStreams(kinesis) {
  const all = [];
  for (let page; page?.HasMoreStreams ?? true;) {
    page = await kinesis('ListStreams', { ExclusiveStartStreamName: all.at(-1) });
    all.push(...page.StreamNames);
  }
  return all;
}

function formatTable(head, rows) {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  return all.map((row) => `${row.map((text, column) => text.padEnd(widths[column])).join('  ').trimEnd()}\n`).join('');
}

async function printShards({ stream, tsv, ...options }) {
  const shards = await listShards(kinesisClient(runningState(options)), stream);
  const rows = shards.map((shard) => {
    const parents = parentsOf(shard).join(',') || '-';
    return [shard.ShardId, isOpen(shard) ? 'open' : 'closed', parents, ...rangeOf(shard).map(String)];
  });
  process.stdout.write(tsv ? rows.map((row) => `${row.join('\t')}\n`).join('')
    : formatTable(['shard', 'state', 'parents', 'first hash key', 'last hash key'], rows));
}

async function reshard(kinesis, stream, parents, action, input) {
  await kinesis(action, { StreamName: stream, ...input });
  await awaitStream(kinesis, stream);
  const children = (await listShards(kinesis, stream)).filter((shard) => parentsOf(shard).includes(parents[0]));
  console.log(`${parents.join(' and ')} became ${children.map((shard) => shard.ShardId).join(' and ')}`);
}

async function split({ stream, shard, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  const parent = openShard(await listShards(kinesis, stream), stream, shard);
  await reshard(kinesis, stream, [parent.ShardId], 'SplitShard', { ShardToSplit: parent.ShardId, NewStartingHashKey: middleOf(parent) });
}

async function merge({ stream, shard, other, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  const shards = await listShards(kinesis, stream);
  const both = [shard, other].map((wanted) => openShard(shards, stream, wanted));
  if (both[0] === both[1]) throw new Failure(`${both[0].ShardId} cannot be merged with itself`);
  expectNeighbours(shards, ...both);
  const [one, two] = inOrder(...both); // the local Kinesis takes them in no other
  await reshard(kinesis, stream, [one.ShardId, two.ShardId], 'MergeShards',
    { ShardToMerge: one.ShardId, AdjacentShardToMerge: two.ShardId });
}

module.exports = { noStream, awaitStream, createStream, listShards, listStreams, printShards, split, merge };
