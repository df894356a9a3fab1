// SPDX-License-Identifier: Apache-2.0
// Lines of bytes, and the records that they become. Pure.
'use strict';
const { Failure } = require('./failure.js');

const largest = 1024 * 1024; // a record's data and partition key together
const mostOfOneCall = 500;
const mostBytesOfOneCall = 4 * 1024 * 1024; // Kinesis takes 5 MiB

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

module.exports = { linesOf, recordOf, recordsOf, repeated, callsOf };
