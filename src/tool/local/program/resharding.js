// SPDX-License-Identifier: Apache-2.0
'use strict';
const { kinesisClient } = require('./clients.js');
const { Failure } = require('./failure.js');
const { expectNeighbours, inOrder, middleOf, openShard, parentsOf } = require('./shards.js');
const { runningState } = require('./state.js');
const { awaitStream, listShards } = require('./streams.js');

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

module.exports = { split, merge };
