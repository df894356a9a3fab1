// SPDX-License-Identifier: Apache-2.0
'use strict';
const { kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { isOpen, parentsOf, rangeOf } = require('./shards.js');
const { runningState } = require('./state.js');
const { printTable } = require('./table.js');

const noStream = (stream) => ({
  ResourceNotFoundException: `there is no stream ${stream}; kclxx local create-stream ${stream} makes it`,
});

const awaitStream = ({ sdk, client }, stream) =>
  sdk.waitUntilStreamExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { StreamName: stream });

function checkName(stream) {
  if (/^[\w.-]{1,128}$/.test(stream)) return;
  throw new Failure(`'${stream}' is no name of a stream: 1 to 128 letters, digits, '_', '-' and '.'`);
}

async function createStream({ stream, shards, ...options }) {
  checkName(stream);
  const kinesis = kinesisClient(runningState(options));
  const { sdk, client } = kinesis;
  await explained({ ResourceInUseException: `there is a stream ${stream} already` }, () =>
    client.send(new sdk.CreateStreamCommand({ StreamName: stream, ShardCount: Number(shards) })));
  await awaitStream(kinesis, stream);
}

async function listShards({ sdk, client }, stream) {
  checkName(stream);
  const all = [];
  let next;
  do {
    const page = await explained(noStream(stream), () =>
      client.send(new sdk.ListShardsCommand(next === undefined ? { StreamName: stream } : { NextToken: next })));
    all.push(...page.Shards);
    next = page.NextToken;
  } while (next !== undefined);
  return all.sort((a, b) => (a.ShardId < b.ShardId ? -1 : 1));
}

async function listStreams({ sdk, client }) {
  const all = [];
  for await (const page of sdk.paginateListStreams({ client }, {})) all.push(...page.StreamNames);
  return all;
}

async function printShards({ stream, tsv, ...options }) {
  const shards = await listShards(kinesisClient(runningState(options)), stream);
  const rows = shards.map((shard) => {
    const parents = parentsOf(shard).join(',') || '-';
    return [shard.ShardId, isOpen(shard) ? 'open' : 'closed', parents, ...rangeOf(shard).map(String)];
  });
  printTable(['shard', 'state', 'parents', 'first hash key', 'last hash key'], rows, { tsv });
}

module.exports = { noStream, awaitStream, createStream, listShards, listStreams, printShards };
