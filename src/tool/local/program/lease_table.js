// SPDX-License-Identifier: Apache-2.0
// The table that the KCL keeps its leases in.
'use strict';
const { awaitState, dynamodbClient, kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { rootsOf } = require('./shards.js');
const { runningState } = require('./state.js');
const { listShards } = require('./streams.js');

function checkName(application) {
  if (/^[\w.-]{3,255}$/.test(application)) return;
  throw new Failure(`'${application}' is no name of an application: 3 to 255 letters, digits, '_', '-' and '.'`);
}

// As the KCL's is.
function definition(application) {
  const key = (attribute, type) => ({ AttributeName: attribute, KeyType: type });
  const text = (attribute) => ({ AttributeName: attribute, AttributeType: 'S' });
  return {
    TableName: application,
    AttributeDefinitions: [text('leaseKey'), text('leaseOwner')],
    KeySchema: [key('leaseKey', 'HASH')],
    GlobalSecondaryIndexes: [{
      IndexName: 'LeaseOwnerToLeaseKeyIndex',
      KeySchema: [key('leaseOwner', 'HASH'), key('leaseKey', 'RANGE')],
      Projection: { ProjectionType: 'KEYS_ONLY' },
    }],
    BillingMode: 'PAY_PER_REQUEST',
  };
}

// The lease of a shard that nobody has read yet.
const unread = (shard) => ({
  leaseKey: { S: shard.ShardId },
  leaseCounter: { N: '0' },
  checkpoint: { S: 'TRIM_HORIZON' },
  checkpointSubSequenceNumber: { N: '0' },
  ownerSwitchesSinceCheckpoint: { N: '0' },
  startingHashKey: { S: shard.HashKeyRange.StartingHashKey },
  endingHashKey: { S: shard.HashKeyRange.EndingHashKey },
});

// Puts a lease for each shard without a parent into the table, which is made unless the daemon has made it. It must hold no leases.
async function create({ application, stream, ...options }) {
  checkName(application);
  const state = runningState(options);
  const shards = rootsOf(await listShards(kinesisClient(state), stream));
  const dynamodb = dynamodbClient(state);
  const before = await readRows(dynamodb, application);
  if (before?.some((row) => row.checkpoint !== undefined)) throw new Failure(`application ${application} has a lease table already`);
  if (before === undefined) await explained({}, () => dynamodb('CreateTable', definition(application)));
  await awaitState(() => dynamodb('DescribeTable', { TableName: application }), ({ Table }) => Table.TableStatus === 'ACTIVE');
  for (const shard of shards) {
    await explained({ ConditionalCheckFailedException: `the daemon has just made the leases of ${application}` }, () =>
      dynamodb('PutItem', {
        TableName: application,
        Item: unread(shard),
        ConditionExpression: 'attribute_not_exists(leaseKey)', // never over a lease that the daemon has made meanwhile
      }));
  }
}

// The rows of the table, as `aws dynamodb scan` prints them. Nothing: there is no such table.
async function readRows(dynamodb, application) {
  checkName(application);
  const rows = [];
  try {
    let from;
    do {
      const page = await dynamodb('Scan', { TableName: application, ConsistentRead: true, ExclusiveStartKey: from });
      from = page.LastEvaluatedKey;
      rows.push(...page.Items);
    } while (from !== undefined);
  } catch (error) {
    if (error.name === 'ResourceNotFoundException') return undefined;
    return explained({}, () => Promise.reject(error));
  }
  return rows;
}

module.exports = { create, readRows };
