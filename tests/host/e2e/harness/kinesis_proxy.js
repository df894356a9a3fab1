// SPDX-License-Identifier: Apache-2.0
// Is in front of the local Kinesis, and makes its faults: HTTP/2 without TLS, as the KCL speaks it, and JSON, for which
// the daemon has CBOR off. proxy.py starts it and tells it what to do:
//
//   node kinesis_proxy.js UPSTREAM          prints the ports of the proxy and of its control, as JSON
//   POST /rules [RULE...]                   from now on; the first that applies counts
//   GET /seen                               {counts: {OPERATION: {requests: N, FAULT: N}}, failures: [...]}
//
// A rule: {operation, share, fault}, and `shard` if it is for one shard alone. A fault: the name of an error of Kinesis;
// "reset", of the whole connection; "slow", with `milliseconds`; "trimmed", of ListShards, for which `shard` is gone.
'use strict';
const http = require('node:http');
const http2 = require('node:http2');

const upstream = new URL(process.argv[2]);
const agent = new http.Agent({ keepAlive: true });
let rules = [];
const counts = {};
const failures = [];

function ruleFor(operation, request) {
  const found = rules.find((rule) => rule.operation === operation && Math.random() < rule.share &&
    (rule.fault === 'trimmed' || !rule.shard || rule.shard === request.ShardId));
  const count = (counts[operation] ??= { requests: 0 });
  count.requests += 1;
  if (found) count[found.fault] = (count[found.fault] ?? 0) + 1;
  return found;
}

function whole(stream) {
  return new Promise((resolve, reject) => {
    const parts = [];
    stream.on('data', (part) => parts.push(part));
    stream.on('end', () => resolve(Buffer.concat(parts)));
    stream.on('error', reject);
  });
}

function refuse(stream, name) {
  const body = Buffer.from(JSON.stringify({ __type: name, message: `${name} of the proxy` }));
  stream.respond({ ':status': 400, 'content-type': 'application/x-amz-json-1.1', 'x-amzn-errortype': name });
  stream.end(body);
}

function asked(headers, body) {
  const passed = Object.entries(headers).filter(([name]) => !name.startsWith(':') && name !== 'connection');
  return new Promise((resolve, reject) => {
    const request = http.request({
      agent, host: upstream.hostname, port: upstream.port, method: headers[':method'], path: headers[':path'],
      headers: { ...Object.fromEntries(passed), host: upstream.host, 'content-length': body.length },
    }, resolve);
    request.on('error', reject);
    request.end(body);
  });
}

async function forward(stream, headers) {
  const body = await whole(stream);
  const operation = String(headers['x-amz-target']).split('.').pop();
  const request = JSON.parse(body);
  const rule = ruleFor(operation, request);
  if (rule?.fault === 'reset') return stream.session.destroy();
  if (rule?.fault === 'slow') await new Promise((resolve) => setTimeout(resolve, rule.milliseconds));
  if (rule && !['slow', 'trimmed'].includes(rule.fault)) return refuse(stream, rule.fault);
  const isTrimmed = rule?.fault === 'trimmed';
  // The local Kinesis, which trims nothing, would list only the shards of the beginning for a filter.
  const unfiltered = isTrimmed ? Buffer.from(JSON.stringify({ ...request, ShardFilter: undefined })) : body;
  const answer = await asked(headers, unfiltered);
  const left = ['connection', 'keep-alive', 'transfer-encoding', 'content-length'];
  const passed = Object.entries(answer.headers).filter(([name]) => !left.includes(name));
  if (stream.destroyed) return answer.destroy();
  stream.respond({ ':status': answer.statusCode, ...Object.fromEntries(passed) });
  if (!isTrimmed) return answer.pipe(stream);
  const listed = JSON.parse(await whole(answer));
  listed.Shards = listed.Shards.filter((shard) => shard.ShardId !== rule.shard);
  return stream.end(JSON.stringify(listed));
}

const proxy = http2.createServer();
proxy.on('session', (session) => session.on('error', () => {}));
proxy.on('stream', (stream, headers) => {
  stream.on('error', () => {}); // a worker that was killed, or a reset
  forward(stream, headers).catch((error) => {
    if (!stream.destroyed) failures.push(String(error.stack));
    stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  });
});

const control = http.createServer(async (request, response) => {
  const body = await whole(request);
  if (request.method === 'POST') rules = JSON.parse(body);
  response.end(JSON.stringify({ counts, failures }));
});

proxy.listen(0, '127.0.0.1', () => control.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ proxy: proxy.address().port, control: control.address().port }));
}));
