// The demo's own calls to Kinesis and DynamoDB: node aws.js COMMAND …
//   free-ports N               prints N free TCP ports
//   make-stream NAME SHARDS    creates the stream and waits until it can be used
//   make-lease-table NAME STREAM
//                              creates the lease table, with a row for each shard, as the KCL would
//   put STREAM FILE            puts each line of the file as one record
//   leases TABLE               prints: shard, sequence number, sub-sequence number, owner ("-" if none), by shard
// The addresses come from AWS_ENDPOINT_URL_KINESIS and AWS_ENDPOINT_URL_DYNAMODB, which the AWS clients read
// by themselves; the packages are found through NODE_PATH.
'use strict';
const fs = require('node:fs');
const net = require('node:net');
const { setTimeout: sleep } = require('node:timers/promises');

const kinesis = () => {
  const sdk = require('@aws-sdk/client-kinesis');
  const { NodeHttpHandler } = require('@smithy/node-http-handler');
  // HTTP/1.1: this client would speak HTTP/2, and its way of doing so in plain text the local Kinesis refuses.
  return { sdk, client: new sdk.KinesisClient({ requestHandler: new NodeHttpHandler() }) };
};

// All are held until the last one is known, so that no two are the same.
async function freePorts(count) {
  const servers = [];
  for (let i = 0; i < Number(count); ++i) {
    const server = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve, reject) => server.once('listening', resolve).once('error', reject));
    servers.push(server);
  }
  console.log(servers.map((server) => server.address().port).join(' '));
  servers.forEach((server) => server.close());
}

async function makeStream(name, shards) {
  const { sdk, client } = kinesis();
  await client.send(new sdk.CreateStreamCommand({ StreamName: name, ShardCount: Number(shards) }));
  await sdk.waitUntilStreamExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { StreamName: name });
}

async function makeLeaseTable(name, stream) {
  const sdk = require('@aws-sdk/client-dynamodb');
  const client = new sdk.DynamoDBClient({});
  const key = (attribute, type) => ({ AttributeName: attribute, KeyType: type });
  const text = (attribute) => ({ AttributeName: attribute, AttributeType: 'S' });
  await client.send(new sdk.CreateTableCommand({
    TableName: name,
    AttributeDefinitions: [text('leaseKey'), text('leaseOwner')],
    KeySchema: [key('leaseKey', 'HASH')],
    GlobalSecondaryIndexes: [{
      IndexName: 'LeaseOwnerToLeaseKeyIndex',
      KeySchema: [key('leaseOwner', 'HASH'), key('leaseKey', 'RANGE')],
      Projection: { ProjectionType: 'KEYS_ONLY' },
    }],
    BillingMode: 'PAY_PER_REQUEST',
  }));
  await sdk.waitUntilTableExists({ client, minDelay: 1, maxDelay: 1, maxWaitTime: 30 }, { TableName: name });

  const { sdk: kinesisSdk, client: kinesisClient } = kinesis();
  const { Shards: shards } = await kinesisClient.send(new kinesisSdk.ListShardsCommand({ StreamName: stream }));
  for (const shard of shards) {
    await client.send(new sdk.PutItemCommand({
      TableName: name,
      Item: {
        leaseKey: { S: shard.ShardId },
        leaseCounter: { N: '0' },
        checkpoint: { S: 'TRIM_HORIZON' },
        checkpointSubSequenceNumber: { N: '0' },
        ownerSwitchesSinceCheckpoint: { N: '0' },
        startingHashKey: { S: shard.HashKeyRange.StartingHashKey },
        endingHashKey: { S: shard.HashKeyRange.EndingHashKey },
      },
    }));
  }
}

function progress(done, total) {
  const line = `${done} of ${total} put`;
  if (process.stdout.isTTY) process.stdout.write(`\r      ${line}${done === total ? '\n' : ''}`);
  else if (done === total || done % 2500 === 0) console.log(`      ${line}`);
}

async function put(stream, file) {
  const { sdk, client } = kinesis();
  // latin1 keeps every byte as it is.
  const lines = fs.readFileSync(file, 'latin1').split('\n').filter((line) => line !== '');
  const records = lines.map((line, i) => ({ Data: Buffer.from(line, 'latin1'), PartitionKey: `line ${i}` }));
  const most = 500; // of one call
  for (let done = 0; done < records.length; ) {
    let left = records.slice(done, done + most);
    done += left.length;
    for (let tries = 0; left.length > 0; ++tries) {
      if (tries === 10) throw new Error(`${left.length} records were refused ten times`);
      if (tries > 0) await sleep(50 * 2 ** tries);
      const answer = await client.send(new sdk.PutRecordsCommand({ StreamName: stream, Records: left }));
      // A call can succeed for some records only; just the others are put again.
      left = left.filter((_, i) => answer.Records[i].ErrorCode !== undefined);
    }
    progress(done, records.length);
  }
}

async function leases(table) {
  const { DynamoDBClient, paginateScan } = require('@aws-sdk/client-dynamodb');
  const rows = [];
  const client = new DynamoDBClient({});
  for await (const page of paginateScan({ client }, { TableName: table, ConsistentRead: true })) {
    for (const item of page.Items) {
      // The KCL may keep other things in this table too; only leases have a checkpoint.
      if (item.checkpoint === undefined) continue;
      rows.push([item.leaseKey.S, item.checkpoint.S, item.checkpointSubSequenceNumber.N, item.leaseOwner?.S ?? '-']);
    }
  }
  for (const row of rows.sort()) console.log(row.join('\t'));
}

const commands = {
  'free-ports': freePorts,
  'make-stream': makeStream,
  'make-lease-table': makeLeaseTable,
  put,
  leases,
};
const [command, ...args] = process.argv.slice(2);
commands[command](...args).catch((error) => {
  console.error(`${command}: ${error.name}: ${error.message}`);
  process.exit(1);
});
