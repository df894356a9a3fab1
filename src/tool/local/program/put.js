// SPDX-License-Identifier: Apache-2.0
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { callsOf, linesOf, recordOf } = require('./lines.js');
const { runningState } = require('./state.js');
const { listShards, noStream } = require('./streams.js');

const counted = (number) => `${number} record${number === 1 ? '' : 's'}`;

// A call can succeed for some records only; just the others are put again.
async function putAll({ sdk, client }, stream, records) {
  let left = records;
  let why;
  for (let tries = 0; left.length > 0; ++tries) {
    if (tries === 10) throw new Failure(`ten times refused: ${counted(left.length)}, with ${why}`);
    if (tries > 0) await sleep(50 * 2 ** tries);
    const answer = await explained(noStream(stream), () =>
      client.send(new sdk.PutRecordsCommand({ StreamName: stream, Records: left })));
    why = answer.Records.find((record) => record.ErrorCode !== undefined)?.ErrorCode;
    left = left.filter((_, i) => answer.Records[i].ErrorCode !== undefined);
  }
}

// Overwritten on a terminal, and not shown elsewhere.
function progress(done) {
  if (process.stderr.isTTY) process.stderr.write(`\r${counted(done)} put`);
}

// The file is stdin: the tool has opened it.
async function put({ stream, 'partition-key': key, 'key-separator': separator, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  await listShards(kinesis, stream); // no stream: report it before the first line is typed
  let number = 0;
  let done = 0;
  const blank = [];
  try {
    for await (const lines of linesOf(process.stdin)) {
      const records = lines.map((line) => recordOf(line, ++number, { key, separator }) ?? void blank.push(number));
      for (const call of callsOf(records.filter((record) => record !== undefined))) {
        await putAll(kinesis, stream, call);
        done += call.length;
        progress(done);
      }
    }
  } catch (error) {
    if (process.stderr.isTTY && done > 0) console.error();
    if (error.isPlain) error.message += `; put before it: ${counted(done)}`;
    throw error;
  }
  if (process.stderr.isTTY) process.stderr.write('\r');
  if (blank.length > 0) {
    const which = blank.length === 1 ? `line ${blank[0]} is blank and was`
      : `${blank.length} blank lines, the first is line ${blank[0]}, were`;
    console.error(`kclxx local put: ${which} left out`);
  }
  console.log(`${counted(done)} put`);
}

module.exports = { put };
