// SPDX-License-Identifier: Apache-2.0
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { kinesisClient } = require('./clients.js');
const { explained, Failure } = require('./failure.js');
const { callsOf, linesOf, recordsOf, repeated } = require('./lines.js');
const { runningState } = require('./state.js');
const { listShards, noStream } = require('./streams.js');

const counted = (number) => `${number} record${number === 1 ? '' : 's'}`;

// A call can succeed for some records only; just the others are put again.
async function putAll(kinesis, stream, records) {
  let left = records.map(({ Data, ...others }) => ({ Data: Data.toString('base64'), ...others }));
  let why;
  for (let tries = 0; left.length > 0; ++tries) {
    if (tries === 10) throw new Failure(`ten times refused: ${counted(left.length)}, with ${why}`);
    if (tries > 0) await sleep(50 * 2 ** tries);
    const answer = await explained(noStream(stream), () =>
      kinesis('PutRecords', { StreamName: stream, Records: left }));
    why = answer.Records.find((record) => record.ErrorCode !== undefined)?.ErrorCode;
    left = left.filter((_, i) => answer.Records[i].ErrorCode !== undefined);
  }
}

// Overwritten on a terminal, and not shown elsewhere.
function progress(done) {
  if (process.stderr.isTTY) process.stderr.write(`\r${counted(done)} put`);
}

// Tells when the records after the first `done` are due.
class Pace {
  #begin = performance.now();
  #rate;

  // Undefined: as fast as they can be put.
  constructor(rate) {
    this.#rate = rate;
  }

  // So that a second has ten calls.
  get mostOfOneCall() {
    return this.#rate === undefined ? undefined : Math.max(1, Math.floor(this.#rate / 10));
  }

  async awaitTurn(done) {
    if (this.#rate === undefined) return;
    const early = this.#begin + (done * 1000) / this.#rate - performance.now();
    if (early > 0) await sleep(early);
  }

  mentionMissed(done) {
    const reached = (done * 1000) / (performance.now() - this.#begin);
    if (this.#rate === undefined || done < this.#rate || reached > 0.9 * this.#rate) return;
    console.error(`kclxx local put: ${Math.round(reached)} records a second, not ${this.#rate}: ` +
      'the local Kinesis is not faster');
  }
}

async function payloads(separator) {
  const lines = [];
  for await (const some of linesOf(process.stdin, separator)) lines.push(...some.filter((line) => line.length > 0));
  if (lines.length === 0) throw new Failure('the file with the payloads has no line');
  return lines;
}

// Set when a signal asks this process to end.
function interruption() {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => controller.abort());
  return controller.signal;
}

// The file is stdin: the tool has opened it.
async function put({ stream, data, records: wanted, rate, 'partition-key': key, 'key-separator': separator, ...options }) {
  const kinesis = kinesisClient(runningState(options));
  await listShards(kinesis, stream); // no stream: report it before the first line is typed
  const isLoad = data !== undefined;
  const source = isLoad ? repeated(await payloads(separator), Number(wanted ?? Infinity))
    : linesOf(process.stdin, separator);
  const end = isLoad ? interruption() : undefined; // the usual end of an endless load
  const pace = new Pace(rate === undefined ? undefined : Number(rate));
  let number = 0;
  let done = 0;
  const blank = [];
  try {
    for await (const lines of source) {
      const found = recordsOf(lines, number + 1, { key, separator });
      number += lines.length;
      blank.push(...found.blank);
      for (const call of callsOf(found.records, pace.mostOfOneCall)) {
        if (end?.aborted) break;
        await pace.awaitTurn(done);
        await putAll(kinesis, stream, call);
        done += call.length;
        progress(done);
      }
      if (end?.aborted) break;
      if (found.failure) throw found.failure;
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
  pace.mentionMissed(done);
  console.log(`${counted(done)} put`);
}

module.exports = { put };
