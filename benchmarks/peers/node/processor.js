// SPDX-License-Identifier: Apache-2.0
// The least that a user of aws-kcl writes: decode, add up, checkpoint each batch at its last record.
'use strict';
const kcl = require('aws-kcl');

let bytes = 0;

kcl({
  initialize(input, done) {
    done();
  },

  processRecords(input, done) {
    const records = input.records;
    for (const record of records) bytes += Buffer.from(record.data || '', 'base64').length;
    if (records.length === 0) return done();
    input.checkpointer.checkpoint(records[records.length - 1].sequenceNumber, () => done());
  },

  leaseLost(input, done) {
    done();
  },

  shardEnded(input, done) {
    input.checkpointer.checkpoint(() => done());
  },

  shutdownRequested(input, done) {
    input.checkpointer.checkpoint(() => done());
  },
}).run();

process.on('exit', () => process.stderr.write(`${bytes} bytes\n`));
