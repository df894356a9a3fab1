// SPDX-License-Identifier: Apache-2.0
// A Kinesis of one stream that has the same records for ever, so that serving them costs little: as the KCL speaks to
// Kinesis, HTTP/2 in plain text with CBOR.
//   canned_kinesis.js SHARDS RECORDS BYTES RATE AGGREGATED
// A GetRecords gets at most RECORDS records of BYTES bytes. RATE: records a second and shard, 0: as fast as they are
// asked for. AGGREGATED: how many records each record has, as the KPL makes them; 0: it is none. Prints its port.
'use strict';
const crypto = require('node:crypto');
const http2 = require('node:http2');

const [shards, most, bytes, rate, aggregated] = process.argv.slice(2).map(Number);
const begin = Date.now();

// CBOR (RFC 8949), as much of it as the answers need. Lengths have four bytes.
function head(type, length) {
  const buffer = Buffer.alloc(5);
  buffer[0] = (type << 5) | 26;
  buffer.writeUInt32BE(length, 1);
  return buffer;
}
function cbor(value) {
  if (Buffer.isBuffer(value)) return Buffer.concat([head(2, value.length), value]);
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (typeof value === 'bigint') {
    const buffer = Buffer.alloc(9, 27);
    buffer.writeBigUInt64BE(value, 1);
    return buffer;
  }
  if (typeof value === 'boolean') return Buffer.from([value ? 0xf5 : 0xf4]);
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(cbor)]);
  const entries = Object.entries(value);
  return Buffer.concat([head(5, entries.length), ...entries.flatMap(([name, one]) => [cbor(name), cbor(one)])]);
}

const shardName = (index) => `shardId-${String(index).padStart(12, '0')}`;
const hashKey = (index) => ((1n << 128n) * BigInt(index) / BigInt(shards)).toString();
const listing = cbor({
  Shards: Array.from({ length: shards }, (_, i) => ({
    ShardId: shardName(i),
    HashKeyRange: { StartingHashKey: hashKey(i), EndingHashKey: (BigInt(hashKey(i + 1)) - 1n).toString() },
    SequenceNumberRange: { StartingSequenceNumber: '1'.padEnd(56, '0') },
  })),
});

// The sequence numbers differ in their last digits alone.
const digits = 16;
const sequence = (number) => '4959033827149025660855969253836157109592' + String(number).padStart(digits, '0');
// Protocol buffers: field 1 has the partition keys, 2 the explicit hash keys, 3 the records.
function field(number, value) {
  const head = [(number << 3) | 2];
  for (let rest = value.length; rest > 0; rest >>>= 7) head.push((rest & 127) | (rest > 127 ? 128 : 0));
  return Buffer.concat([Buffer.from(head), value]);
}
function aggregate(shard) {
  const tables = [field(1, Buffer.from('key')), field(2, Buffer.from(hashKey(shard)))]; // the KCL drops what is another shard's
  const one = () => field(3, Buffer.concat([Buffer.from([8, 0, 16, 0]), field(3, crypto.randomBytes(bytes))]));
  const body = Buffer.concat([...tables, ...Array.from({ length: aggregated }, one)]);
  return Buffer.concat([Buffer.from('f3899ac2', 'hex'), body, crypto.createHash('md5').update(body).digest()]);
}
const record = (number, shard) => cbor({
  SequenceNumber: sequence(number),
  Data: aggregated ? aggregate(shard) : crypto.randomBytes(bytes),
  PartitionKey: `key-${String(number % 1000).padStart(3, '0')}`,
  ApproximateArrivalTimestamp: BigInt(begin),
});
const canned = Array.from({ length: aggregated ? shards : 1 }, (_, shard) =>
  Buffer.concat(Array.from({ length: most }, (_, i) => record(i, shard))));
const place = canned[0].indexOf(sequence(0)) + sequence(0).length - digits;

function records(iterator) {
  const [shard, from] = iterator.split('|');
  const first = Number(from);
  const due = rate === 0 ? Infinity : Math.floor((Date.now() - begin) * rate / 1000) - first;
  const count = Math.max(0, Math.min(most, due));
  const mine = canned[Number(shard.slice(-12)) % canned.length];
  const step = mine.length / most;
  const some = Buffer.from(mine.subarray(0, count * step));
  for (let i = 0; i < count; ++i) some.write(String(first + i).padStart(digits, '0'), i * step + place, 'latin1');
  return Buffer.concat([
    head(5, 3), cbor('NextShardIterator'), cbor(`${shard}|${first + count}`),
    cbor('MillisBehindLatest'), cbor(0n), cbor('Records'), head(4, count), some,
  ]);
}

function answer(action, body) {
  const text = body.toString('latin1');
  switch (action) {
    case 'ListShards': return listing;
    case 'GetShardIterator': return cbor({ ShardIterator: `${/shardId-\d{12}/.exec(text)[0]}|0` });
    case 'GetRecords': return records(/shardId-\d{12}\|\d+/.exec(text)[0]);
    default: throw new Error(`not known here: ${action}`);
  }
}

const server = http2.createServer();
server.on('stream', (stream, headers) => {
  const body = [];
  stream.on('data', (piece) => body.push(piece));
  stream.on('error', () => {}); // the daemon has gone
  stream.on('end', () => {
    if (stream.destroyed) return;
    const bytes = answer(headers['x-amz-target'].split('.')[1], Buffer.concat(body));
    stream.respond({ ':status': 200, 'content-type': 'application/x-amz-cbor-1.1', 'x-amzn-requestid': crypto.randomUUID() });
    stream.end(bytes);
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
