// SPDX-License-Identifier: Apache-2.0
// The AWS clients, for what runs here and nothing else: address and credentials are given, and no variable or file
// of the caller's AWS account is read.
'use strict';
const { addressOf, credentials, region } = require('./exports.js');
const { requirePackage } = require('./packages.js');

function withoutAccount() {
  for (const name of Object.keys(process.env)) {
    if (name.startsWith('AWS_')) delete process.env[name];
  }
  process.env.AWS_CONFIG_FILE = process.env.AWS_SHARED_CREDENTIALS_FILE = '/dev/null';
}

const settingsFor = (emulator) => ({ endpoint: addressOf(emulator), region, credentials });

function kinesisClient(state) {
  withoutAccount();
  const sdk = requirePackage('@aws-sdk/client-kinesis');
  const { NodeHttpHandler } = requirePackage('@smithy/node-http-handler');
  // HTTP/1.1: this client would speak HTTP/2, and its way of doing so in plain text the local Kinesis refuses.
  const client = new sdk.KinesisClient({ ...settingsFor(state.kinesis), requestHandler: new NodeHttpHandler() });
  return { sdk, client };
}

function dynamodbClient(state) {
  withoutAccount();
  const sdk = requirePackage('@aws-sdk/client-dynamodb');
  return { sdk, client: new sdk.DynamoDBClient(settingsFor(state.dynamodb)) };
}

module.exports = { kinesisClient, dynamodbClient };
