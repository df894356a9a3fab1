// SPDX-License-Identifier: Apache-2.0
// Random shards, each processed by one of the forms of kclxx/processing.hpp.
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <kclxx/testing/worker.hpp>

#include "simulation/processing/program.hpp"
#include "simulation/seed_runner.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::simulation;
using std::chrono::milliseconds;

constexpr int most_children = 6;

/// One shard that a random program processes under the test kit's daemon, with faults, by one child
/// after the other. The last one meets no fault, and finishes it.
class shard_run {
 public:
  shard_run(std::uint64_t seed, trace& log)
      : log_(log),
        random_(seed),
        program_(random_, log),
        daemon_(program_.make_program(), program_.make_options(),
                {.seed = static_cast<std::uint32_t>(random_.next())}) {
    program_.set_daemon(daemon_);
  }

  /// Returns how often handlers were called. Errors: violation.
  run_length run() {
    const auto began = daemon_.now();
    try {
      play();
    } catch (const violation&) {
      throw;
    } catch (const std::logic_error& error) {  // the test kit: nothing can continue the dialogue
      throw violation(std::string("stuck: ") + error.what());
    }
    return {program_.calls(), daemon_.now() - began};
  }

 private:
  void play() {
    daemon_.initialize();
    for (int child = 1; child < most_children && !is_finished(); ++child) {
      while (is_alive() && !random_.chance(3)) take_step();
      end_life();
      if (!is_finished()) start_next(child + 1 == most_children);
    }
    if (!is_finished()) finish();
    program_.end_child(true);
  }

  [[nodiscard]] bool is_alive() const { return !is_killed_ && !daemon_.exit_status(); }
  [[nodiscard]] bool is_finished() const {
    return daemon_.persisted() == sequence_position("SHARD_END");
  }

  void take_step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 50) {
      deliver();
    } else if (choice < 74) {
      log_.note([] { return std::string("time passes"); });
      // Often to the moment at which what was gathered has to be handed over.
      daemon_.advance(random_.chance(20) ? program_.linger() : milliseconds(random_.below(4000)));
    } else if (choice < 75) {
      program_.begin_outage(milliseconds(1 + random_.below(60000)));
    } else if (choice < 80) {
      daemon_.deliver({});
    } else if (choice < 86) {
      const char* const error =
          random_.chance(70) ? "ThrottlingException" : "KinesisClientLibDependencyException";
      program_.note(fault::checkpoint_refused);
      daemon_.fail_next_checkpoint(error, static_cast<int>(1 + random_.below(3)));
    } else if (choice < 88) {
      program_.note(fault::lease_lost_silently);
      program_.lose_lease();
      daemon_.lose_lease_silently();
    } else if (choice < 91) {
      program_.note(fault::input_ends);
      daemon_.end_input_in_next_callback();
      deliver();
    } else if (choice < 97) {
      program_.settle_one();
    } else {
      program_.settle_late();
    }
    program_.check();
  }

  void deliver() {
    const std::size_t count = 1 + random_.below(20);
    program_.expect(count);
    const auto records = program_.records().take(count);
    log_.note([&] { return std::to_string(records.size()) + " records are delivered"; });
    daemon_.deliver_records(records);
  }

  /// The child ends in one of the ways in which it can.
  void end_life() {
    if (is_alive()) {
      switch (random_.below(5)) {
        case 0:
          program_.note(fault::killed);
          is_killed_ = true;
          daemon_.crash();
          break;
        case 1:
          program_.note(fault::lease_lost);
          daemon_.lose_lease();
          break;
        case 2:
          program_.note(fault::shutdown_requested);
          daemon_.request_shutdown();
          // The lease is handed over meanwhile, or other shards are shut down.
          if (is_alive()) daemon_.advance(milliseconds(random_.below(60000)));
          break;
        case 3:
          if (!program_.records().is_all_delivered()) break;
          log_.note([] { return std::string("the shard ends"); });
          program_.end_waiting();
          daemon_.end_shard();
          break;
        default:
          break;
      }
      program_.check();
    }
    if (is_alive()) daemon_.end_input();
    program_.check();
    check_end();
  }

  void start_next(bool is_last) {
    log_.note([&] { return "--- the next child, after " + to_string(daemon_.persisted()); });
    program_.end_child(is_last);
    daemon_.resume();
    is_killed_ = false;
    program_.check();
  }

  /// The last child: without faults.
  void finish() {
    while (!program_.records().is_all_delivered()) {
      deliver();
      program_.check();
    }
    daemon_.end_shard();
    program_.check();
    if (is_alive()) daemon_.end_input();
    program_.check();
    check_end();
    if (!is_finished()) throw violation("end: a child without faults did not finish the shard");
  }

  /// How the child left.
  void check_end() {
    const auto status = daemon_.exit_status();
    log_.note([&] {
      return status ? "the child left with " + std::to_string(static_cast<int>(*status))
                    : std::string("the child is dead");
    });
    if (!status) return;
    const bool is_explained = *status == exit_status::ok || *status == exit_status::daemon_gone ||
                              *status == exit_status::shard_end_failed ||
                              (*status == exit_status::callback_failed && program_.may_fail());
    if (!is_explained) {
      throw violation("exit: status " + std::to_string(static_cast<int>(*status)));
    }
  }

  trace& log_;
  random_source random_;
  program program_;
  testing::worker daemon_;
  bool is_killed_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return run_seeds(
      argc, argv, "Simulates processing: failures, handlers side by side, and faults, from a seed.",
      [](std::uint64_t seed, trace& log) { return shard_run(seed, log).run(); }, program::met());
}
