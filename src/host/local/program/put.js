// SPDX-License-Identifier: Apache-2.0
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { explained, Failure, kinesisClient } = require('./clients.js');
const { interruption, runningState } = require('./emulators.js');
const { listShards, noStream } = require('./streams.js');

// Lines of bytes, and the records that they become. Pure.

const largest = 10 * 1024 * 1024; // a record's data and partition key together
const mostOfOneCall = 500;
const mostBytesOfOneCall = 4 * 1024 * 1024; // a larger record has a call of its own

// Yields the lines that end in each chunk as soon as it is there, so that what is typed or comes from a pipe does not
// wait for more. A line that is too long is yielded in parts, of which the first is too long for a record.
async function* linesOf(chunks, separator = '') {
  const longest = largest + Buffer.byteLength(separator);
  let begun = [];
  let size = 0;
  for await (const chunk of chunks) {
    const lines = [];
    let from = 0;
    for (let at; (at = chunk.indexOf(10, from)) !== -1; from = at + 1) {
      lines.push(Buffer.concat([...begun, chunk.subarray(from, at)]));
      begun = [];
      size = 0;
    }
    if (from < chunk.length) begun.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > longest) {
      lines.push(Buffer.concat(begun.splice(0)));
      size = 0;
    }
    if (lines.length > 0) yield lines;
  }
  if (begun.length > 0) yield [Buffer.concat(begun)];
}

// The record of a line, the first of which has the number 1; nothing for a blank one. Without an option each line
// has a partition key of its own, so that they spread over all shards.
function recordOf(line, number, { key, separator }) {
  if (line.length === 0) return undefined;
  let partitionKey = key ?? `line ${number}`;
  let data = line;
  if (separator !== undefined) {
    const at = line.indexOf(separator);
    const name = JSON.stringify(separator);
    if (at === -1) throw new Failure(`line ${number} has no ${name} after its partition key`);
    if (at === 0) throw new Failure(`line ${number} has nothing before ${name}`);
    partitionKey = line.subarray(0, at).toString('utf8');
    data = line.subarray(at + Buffer.byteLength(separator));
  }
  if ([...partitionKey].length > 256) throw new Failure(`line ${number}: its partition key has more than 256 letters`);
  if (data.length + Buffer.byteLength(partitionKey) > largest) {
    throw new Failure(`line ${number} is too long: with its partition key a record has at most ${largest} bytes`);
  }
  return { Data: data, PartitionKey: partitionKey };
}

// Up to the first line that cannot be a record: the records, the numbers of blank lines, and what is wrong with that line.
function recordsOf(lines, first, options) {
  const records = [];
  const blank = [];
  try {
    lines.forEach((line, i) => {
      const record = recordOf(line, first + i, options);
      if (record === undefined) blank.push(first + i);
      else records.push(record);
    });
  } catch (failure) {
    return { records, blank, failure };
  }
  return { records, blank };
}

// The lines again and again, until `wanted` of them were given.
function* repeated(lines, wanted) {
  for (let given = 0; given < wanted;) {
    const some = lines.slice(0, wanted - given);
    yield some;
    given += some.length;
  }
}

// As many as one call takes, and at most `most`.
function* callsOf(records, most = mostOfOneCall) {
  let call = [];
  let bytes = 0;
  for (const record of records) {
    const size = record.Data.length + Buffer.byteLength(record.PartitionKey);
    if (call.length === Math.min(most, mostOfOneCall) || (call.length > 0 && bytes + size > mostBytesOfOneCall)) {
      yield call;
      call = [];
      bytes = 0;
    }
    call.push(record);
    bytes += size;
  }
  if (call.length > 0) yield call;
}

const counted = (number) => `${number} record${number === 1 ? '' : 's'}`;

// Puts the records. A call can succeed for some of them only; then the others are put again.
async function putAll(kinesis, stream, records) {
  let unput = records.map(({ Data, ...others }) => ({ Data: Data.toString('base64'), ...others }));
  let why;
  for (let tries = 0; unput.length > 0; ++tries) {
    if (tries === 10) throw new Failure(`ten times refused: ${counted(unput.length)}, with ${why}`);
    if (tries > 0) await sleep(50 * 2 ** tries);
    const answer = await explained(noStream(stream), () =>
      kinesis('PutRecords', { StreamName: stream, Records: unput }));
    why = answer.Records.find((record) => record.ErrorCode !== undefined)?.ErrorCode;
    unput = unput.filter((_, i) => answer.Records[i].ErrorCode !== undefined);
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

module.exports = { linesOf, recordOf, callsOf, put };
