// SPDX-License-Identifier: Apache-2.0
// A batch's whole dialogue without I/O: processRecords, async_checkpoint, the status, and the
// answer to the checkpoint.
#include "session/session.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <kclxx/record_batch.hpp>

#include "floor.hpp"
#include "protocol/message.hpp"

namespace kclxx::bench {

namespace {

sequence_position position(std::uint64_t batch) {
  return sequence_position("495903382714902566085596925383615710" +
                           std::to_string(10'000'000'000'000'000'000U + batch));
}

void session_batch(benchmark::State& state) {
  run_options options;
  options.mode = checkpoint_mode::manual;
  options.checkpoint_interval = std::chrono::milliseconds(0);
  session::session session(options);
  session::actions actions;
  const session::time_point now{};
  session.on_message({"initialize", protocol::initialize{"shardId-000000000000", {}}}, {}, now,
                     actions);
  session.on_callback_returned(now, actions);
  std::uint64_t batch = 0;
  for (auto _ : state) {
    const sequence_position end = position(++batch);
    actions.clear();
    session.on_message({"processRecords", protocol::process_records{{}, end}}, {}, now, actions);
    session.on_async_checkpoint({}, end, true, now, actions);
    session.on_callback_returned(now, actions);
    session.on_message({"checkpoint", protocol::checkpoint_answer{{}, end}}, {}, now, actions);
    // call, write_checkpoint, write_status
    if (actions.size() != 3) {
      state.SkipWithError("not the dialogue that is to be measured");
      break;
    }
  }
}
void floor_of_session_batch(benchmark::State& state) {
  copy_and_search(state, std::string(400, 'x'));  // what the daemon and the child write for it
}

BENCHMARK(session_batch);
BENCHMARK(floor_of_session_batch);

}  // namespace

}  // namespace kclxx::bench
