// SPDX-License-Identifier: Apache-2.0
// The test kit: link kclxx::testing. docs/testing.md is its guide.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <exception>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/testing/worker_options.hpp>  // IWYU pragma: export

namespace kclxx::testing {

/// A worker with one shard in virtual time: a model of the MultiLangDaemon, and the child that it
/// has started. The child uses the code of production, except for pipes. Callbacks run on the
/// test's thread. What has other threads in production has threads of the kit: one of them runs at
/// a time, while the test's thread waits. A std::stop_callback may run on a further thread, at once
/// and to its end, so it must not wait for what the callback holds; its calls to the shard, log()
/// included, then have no effect.
///
/// Each function returns once the dialogue is quiet: callbacks have run, checkpoints are answered,
/// and the clock has advanced past the retries that a callback or the end of an action waited for.
///
/// Errors: std::logic_error from a function that a daemon could not perform now, and from a
/// function that would never end (see worker_options::idle_limit); std::invalid_argument for an
/// argument that no daemon could send. An exception of a callback does not reach the caller:
/// exit_status(), log() and thrown() have it, and the next call throws. An exception for a lost
/// lease is only in log(), and the child continues (see record_processor).
/// Thread safety: none. What another thread asks for has no effect. The function of this class that
/// runs meanwhile throws std::logic_error at its end, or the next one does.
/// Lifetime: the processor can be inspected until crash(), resume() or the end of this object.
/// Checkpoint handlers that are due after the end of this object are not called.
/// Blocking: while user code runs in it.
class worker {
 public:
  /// The unit of times.
  using milliseconds = std::chrono::milliseconds;

  /// A checkpoint that the daemon was asked for, and its answer.
  struct checkpoint_attempt {
    /// The position that the child asked for.
    sequence_position position;
    std::optional<std::string> error{};  ///< the simple name of the daemon's exception
    bool operator==(const checkpoint_attempt&) const = default;
  };

  /// A worker before initialize(). log() has each message but those of the beginning and the end of
  /// the lease, `options.log` gets those of at least logging.level, and stderr none.
  explicit worker(processor_factory make_processor, const run_options& options = {},
                  worker_options settings = {});
  /// A moved-from worker can only be destroyed or assigned to.
  worker(worker&&) noexcept;
  /// Ends the child of this worker first.
  worker& operator=(worker&&) noexcept;
  /// Ends the child: its processor is destroyed.
  ~worker();

  /// The daemon assigns the shard; `start` is the position that is persisted already.
  worker& initialize(std::string_view shard_id = "shardId-000000000000",
                     const sequence_position& start = sequence_position("TRIM_HORIZON"));
  /// Delivers a batch of these payloads; {} is an empty one. Sequence numbers continue from the
  /// highest so far, beginning with 1; partition key "key"; arrival by the virtual clock.
  worker& deliver(const std::vector<std::string>& payloads,
                  std::optional<milliseconds> millis_behind_latest = milliseconds(0));
  /// Delivers records with exactly these fields. A field that is absent is null in the daemon's
  /// line, but an absent sequence number is the next free number, and an absent sub-sequence number
  /// is 0. A batch may begin with records
  /// that were delivered before, as when a daemon repeats a delivery: give their numbers alone.
  /// Errors: std::invalid_argument when a sequence number is not a number, or the records are not
  /// in the shard's order.
  worker& deliver_records(const std::vector<record::fields>& records,
                          std::optional<milliseconds> millis_behind_latest = milliseconds(0));
  /// The user records of one aggregated (KPL) record: one sequence number, sub-sequence 0, 1, ...
  worker& deliver_aggregate(const std::vector<std::string>& payloads,
                            std::optional<milliseconds> millis_behind_latest = milliseconds(0));
  /// The daemon sends leaseLost.
  worker& lose_lease();
  /// The daemon sends shardEnded.
  worker& end_shard();
  /// The daemon sends shutdownRequested; lose_lease, end_shard or end_input follows.
  worker& request_shutdown();
  /// The daemon closes the child's stdin. Inside a callback: the daemon dies.
  worker& end_input();
  /// Virtual time passes, at most ten years. Inside a callback: that callback takes this long.
  worker& advance(milliseconds time);

  /// The child is killed, as by kill -9: no callback is called, and the processor is not destroyed.
  /// Inside user code, crash() leaves that code: it throws process_ended, which is no
  /// std::exception. Unlike a real kill, this destroys local objects.
  worker& crash();
  /// Starts the child's successor after crash(), or once the child has left. A new processor is
  /// initialized at persisted(), and the records after that are delivered again. Faults that no
  /// checkpoint has met are dropped.
  worker& resume();

  // Faults; these may be set inside a callback, too.
  /// Writing a checkpoint fails with this exception of the daemon's, `times` times; several calls
  /// queue up.
  /// Errors: std::invalid_argument for less than one time.
  worker& fail_next_checkpoint(std::string_view exception, int times = 1);
  /// Another worker took the lease, and the daemon has not noticed: checkpoints fail with
  /// ShutdownException.
  worker& lose_lease_silently();
  /// Another worker takes the lease, and this worker has not noticed, as after a pause of its
  /// machine. Returns that successor: a new processor is initialized at persisted(), and the
  /// records after that are delivered. May be called inside a callback.
  ///
  /// Both workers can be driven, in any order (docs/testing.md). They share persisted(), the clock
  /// and the records.
  [[nodiscard]] worker start_successor();
  /// The daemon dies as soon as the next callback has begun.
  worker& end_input_in_next_callback();

  // What happened, crashes included. References are valid until the next call.
  /// Each persisted position, in order; SHARD_END for the shard's end.
  [[nodiscard]] const std::vector<sequence_position>& checkpoints() const noexcept;
  /// Where a successor would resume: after this.
  [[nodiscard]] const sequence_position& persisted() const noexcept;
  /// Each checkpoint that the child asked for, with its answer, in order.
  [[nodiscard]] const std::vector<checkpoint_attempt>& attempts() const noexcept;
  /// Each message of the library, in order.
  [[nodiscard]] const std::vector<log_entry>& log() const noexcept;
  /// "initialize", "process_records", ... in order.
  [[nodiscard]] const std::vector<std::string>& callbacks() const noexcept;
  /// Once the child has exited; a killed one has none.
  [[nodiscard]] std::optional<kclxx::exit_status> exit_status() const noexcept;
  /// False once the child has left or crashed, until resume().
  [[nodiscard]] bool is_running() const noexcept;
  /// The first exception of the child's user code, or what it gave to shard_context::fail; null if
  /// there is none. After resume(), that of the last child that has one. An exception after which
  /// the session continues does not count (see record_processor).
  [[nodiscard]] std::exception_ptr thrown() const noexcept;
  /// Whether a stop was requested of the child (shard_context::stop_token); true after a crash.
  [[nodiscard]] bool stop_requested() const noexcept;
  /// Whether the child has called shard_context::request_worker_stop; shutdownRequested follows the
  /// open action.
  [[nodiscard]] bool worker_stop_requested() const noexcept;
  /// The virtual time: what shard_context::now() returns in the child.
  [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept;
  /// The user's processor.
  /// Errors: std::logic_error when there is none, and when it is of another type, which is named.
  template <class Processor = record_processor>
  [[nodiscard]] Processor& processor() const {
    record_processor& found = any_processor();
    if (auto* const wanted = dynamic_cast<Processor*>(&found)) return *wanted;
    refuse_type(typeid(found), typeid(Processor));
  }
  /// Both sides' lines, callbacks, logs and faults with their virtual time: for failure messages.
  [[nodiscard]] const std::string& dialogue() const noexcept;

 private:
  class virtual_worker;
  friend std::ostream& operator<<(std::ostream& out, const worker& source);
  explicit worker(std::unique_ptr<virtual_worker> successor);
  [[nodiscard]] record_processor& any_processor() const;
  [[noreturn]] static void refuse_type(const std::type_info& found, const std::type_info& wanted);

  std::unique_ptr<virtual_worker> worker_;
};

/// Writes dialogue(), and last the faults that no checkpoint has met.
std::ostream& operator<<(std::ostream& out, const worker& source);

}  // namespace kclxx::testing
