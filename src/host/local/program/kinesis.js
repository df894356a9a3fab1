// SPDX-License-Identifier: Apache-2.0
// Starts kinesis-local, main.js of the package in the folder that is given, with five changes for which it has no
// option: it listens on 127.0.0.1 alone, it serves no web page, it lists the shards at the trim horizon as Kinesis does, a
// subscription to a shard ends with the shard, and a stream can begin with more than 1,000 shards.
'use strict';
const fs = require('node:fs');
const Module = require('node:module');
const net = require('node:net');
const path = require('node:path');

// kinesis-local calls listen(port, callback) or listen(port, host, callback).
const { listen } = net.Server.prototype;
net.Server.prototype.listen = function listenHere(port, ...others) {
  if (typeof port !== 'number') throw new Error(`listen is called in an unexpected way: ${typeof port}`);
  return listen.call(this, port, '127.0.0.1', ...others.filter((argument) => typeof argument === 'function'));
};

// A page in a browser of this machine sends an Origin, or, after DNS rebinding, the Host that it came from: such a request
// finds nothing here (404), without a header that lets the page read the answer.
const routes = 'new $c_Lkinesis_mock_KinesisMockRoutes$$anon$1(this), ';
const guardedRoutes = `((routes) => {
    const apply = routes.aM;
    const isForeign = ({ eR: name, j0: value }) => /^origin$/i.test(name.dd) ||
      (/^host$/i.test(name.dd) && !/^(localhost|127\\.0\\.0\\.1)(:\\d*)?$/i.test(value));
    routes.aM = function guarded(request, otherwise) {
      for (let headers = request.gj; !headers.c(); headers = headers.v()) {
        if (isForeign(headers.u())) return otherwise.d(request);
      }
      return apply.call(this, request, otherwise);
    };
    return routes;
  })(new $c_Lkinesis_mock_KinesisMockRoutes$$anon$1(this)), `;

// ListShards with AT_TRIM_HORIZON: kinesis-local lists all shards, Kinesis those that were open at
// that time, in which the KCL of a new application begins. In the life of a local stream they are those without a parent.
const allShards = `                if ($x_5) {
                  var filteredShards = allShards;`;
const shardsThen = `                if ($x_5) {
                  var filteredShards = (x63.pA === $m_Lkinesis_mock_models_ShardFilterType$FROM\\uff3fTIMESTAMP$())
                    ? allShards
                    : allShards.p2(new $c_sjsr_AnonFunction1_$$Lambda$412915ce24663401f4bc24349a746e1dbd693dc1(
                      (shard) => shard.vl.c()), false);`;

// SubscribeToShard: kinesis-local never names a shard's children. In the last event of a closed shard Kinesis does, there
// is no sequence number to continue at, and the subscription is over.
const noChildren = 'millisBehindLatest$1_$_lo, millisBehindLatest$1_$_hi, $m_s_None$());';
const children = `millisBehindLatest$1_$_lo, millisBehindLatest$1_$_hi, (() => {
                const now = $m_sci_RedBlackTree$().p5(x$1.ll.dc.b7, stream.ca, x$1.ll.dc.be);
                if (now.c() || end$1 !== data$1.y()) return $m_s_None$();
                const choose = (from, which) => from.p2(
                  new $c_sjsr_AnonFunction1_$$Lambda$412915ce24663401f4bc24349a746e1dbd693dc1(which), false);
                const isChild = (shard, id) => shard.vl.az(id) || shard.vj.az(id);
                const shards = $m_sci_Vector$().aR(now.f().bF.lK());
                const found = choose(shards, (shard) => isChild(shard, $thiz.vf)).al(
                  new $c_sjsr_AnonFunction1_$$Lambda$412915ce24663401f4bc24349a746e1dbd693dc1((shard) =>
                    $m_Lkinesis_mock_models_ChildShard$().bum(shard, choose(shards, (parent) => isChild(shard, parent.cB.h0)))));
                return $f_sc_SeqOps__isEmpty__Z(found) ? $m_s_None$() : new $c_s_Some(found);
              })());`;
const unending = '(idxRef))).zf(new ';
const ending = `(idxRef))).bIb(new $c_sjsr_AnonFunction1_$$Lambda$412915ce24663401f4bc24349a746e1dbd693dc1(
      (event) => event.R5.c()), true).zf(new `;
const eventText = '$m_Lio_circe_Printer$().HJ.X6($ps_Lkinesis_mock_api_SubscribeToShardRequest__given_Encoder_' +
  'SubscribeToShardEvent$1__sr_LazyRef__Lio_circe_Encoder(given_Encoder_SubscribeToShardEvent$lzy1$2).a7(event))';
const lastEventText = `((text) => event.R5.c() ? text :
      text.replace(/("ContinuationSequenceNumber":)"[^"]*"/, '$1null'))(${eventText})`;

// CreateStream: only the limit of all shards together, SHARD_LIMIT, stays.
const thousand = '(((shardCount - 1) | 0) >>> 0) > 999)';
const noMost = 'shardCount < 1)';

const changes = [
  [routes, guardedRoutes], [allShards, shardsThen], [noChildren, children], [unending, ending], [eventText, lastEventText], [thousand, noMost],
];

function changed(text) {
  return changes.reduce((before, [old, its]) => {
    const parts = before.split(old);
    if (parts.length !== 2) throw new Error('this is not the kinesis-local that this program was written for');
    return parts.join(its);
  }, text);
}

const file = path.join(process.argv[2], 'main.js');
const main = new Module(file, null);
main.filename = file;
main.paths = [];
main._compile(changed(fs.readFileSync(file, 'utf8')).replace(/^#!.*/, ''), file);
