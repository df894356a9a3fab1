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
#include <kclxx/testing/daemon_options.hpp>  // IWYU pragma: export

namespace kclxx::testing {

/// A MultiLangDaemon with one shard in virtual time. It uses the code of production, except for
/// pipes. Callbacks run on the test's thread. What has other threads in production has some of the
/// kit's, of which one runs at a time, while the test's thread waits. A std::stop_callback may run
/// on yet another one, at once and to its end, so it must not wait for what the callback holds; its
/// calls to the shard, log() included, then have no effect.
///
/// Each function returns once the dialogue is quiet: callbacks have run, checkpoints are answered,
/// and the clock has advanced past the retries that a callback or the end of an action waited for.
///
/// Errors: std::logic_error from a function that a daemon could not perform now, and from one that
/// would never end (see daemon_options::idle_limit); std::invalid_argument for an argument that no
/// daemon could send. An exception of a callback does not reach the caller: exit_status(), log()
/// and thrown() have it, and the next call throws. An exception for a lost lease is only in log(),
/// and the child continues (see record_processor).
/// Thread safety: none. What another thread asks for has no effect. The function of this class that
/// runs meanwhile throws std::logic_error at its end, or the next one does.
/// Lifetime: the processor can be inspected until crash(), resume() or the end of this object.
/// Checkpoint handlers that are due after the end of this object are not called.
/// Blocking: while user code runs in it.
class daemon {
 public:
  using milliseconds = std::chrono::milliseconds;

  /// A checkpoint that the daemon was asked for, and its answer.
  struct checkpoint_attempt {
    sequence_position position;
    std::optional<std::string> error{};  ///< the simple name of the daemon's exception
    bool operator==(const checkpoint_attempt&) const = default;
  };

  /// A daemon before initialize(). log() has each message but those of the beginning and the end of
  /// the lease, `options.log` gets those of at least logging.level, and stderr none.
  explicit daemon(processor_factory make_processor, const run_options& options = {},
                  daemon_options settings = {});
  /// A moved-from daemon can only be destroyed or assigned to.
  daemon(daemon&&) noexcept;
  daemon& operator=(daemon&&) noexcept;
  ~daemon();

  daemon& initialize(std::string_view shard_id = "shardId-000000000000",
                     const sequence_position& start = sequence_position("TRIM_HORIZON"));
  /// Delivers a batch of these payloads; {} is an empty one. Sequence numbers continue from the
  /// highest so far, beginning with 1; partition key "key"; arrival by the virtual clock.
  daemon& deliver(const std::vector<std::string>& payloads,
                  std::optional<milliseconds> millis_behind_latest = milliseconds(0));
  /// Every field as given. A field that is left out is null in the daemon's line, but a sequence
  /// number is then the next free one, and a sub-sequence number 0. A batch may begin with records
  /// that were delivered before, as when a daemon repeats a delivery: give their numbers alone.
  /// Errors: std::invalid_argument when a sequence number is not a number, or the records are not
  /// in the shard's order.
  daemon& deliver_records(const std::vector<record::fields>& records,
                          std::optional<milliseconds> millis_behind_latest = milliseconds(0));
  /// The user records of one aggregated (KPL) record: one sequence number, sub-sequence 0, 1, ...
  daemon& deliver_aggregate(const std::vector<std::string>& payloads,
                            std::optional<milliseconds> millis_behind_latest = milliseconds(0));
  /// The daemon sends leaseLost, shardEnded or shutdownRequested; before KCL 2.1, `shutdown` in
  /// place of the first two.
  daemon& lose_lease();
  daemon& end_shard();
  daemon& request_shutdown();
  /// The daemon closes the child's stdin. Inside a callback: the daemon dies.
  daemon& end_input();
  /// Virtual time passes, at most ten years. Inside a callback: that callback takes this long.
  daemon& advance(milliseconds time);

  /// The child is killed, as by kill -9: no callback is called, and the processor is not destroyed.
  /// Inside user code, crash() leaves that code: it throws process_ended, which is no
  /// std::exception. Unlike a real kill, this destroys local objects.
  daemon& crash();
  /// A successor starts after crash() or once the child has left: a new processor is initialized
  /// at persisted(), and the records after that are delivered again. Faults that no checkpoint has
  /// met are dropped.
  daemon& resume();

  // Faults; these may be set inside a callback, too.
  /// Writing a checkpoint fails with this Java exception, `times` times; several calls queue up.
  /// Errors: std::invalid_argument for less than one time.
  daemon& fail_next_checkpoint(std::string_view exception, int times = 1);
  /// Another worker took the lease, and the daemon has not noticed: checkpoints fail with
  /// ShutdownException.
  daemon& lose_lease_silently();
  /// Another worker takes the lease, and this daemon has not noticed, as after a pause of its
  /// machine. Returns the other worker's daemon: a new processor is initialized at persisted(), and
  /// the records after that are delivered. May be called inside a callback.
  ///
  /// Both can be driven, in any order (docs/testing.md). They share persisted(), the clock and the
  /// records.
  [[nodiscard]] daemon start_successor();
  /// The daemon dies as soon as the next callback has been entered.
  daemon& end_input_in_next_callback();

  // What happened, crashes included. References are valid until the next call.
  /// Each persisted position, in order; SHARD_END for the shard's end.
  [[nodiscard]] const std::vector<sequence_position>& checkpoints() const noexcept;
  /// Where a successor would resume: after this.
  [[nodiscard]] const sequence_position& persisted() const noexcept;
  [[nodiscard]] const std::vector<checkpoint_attempt>& attempts() const noexcept;
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
  /// By shard_context::request_worker_stop; shutdownRequested follows the open action.
  [[nodiscard]] bool worker_stop_requested() const noexcept;
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
  friend std::ostream& operator<<(std::ostream& out, const daemon& source);
  explicit daemon(std::unique_ptr<virtual_worker> successor);
  [[nodiscard]] record_processor& any_processor() const;
  [[noreturn]] static void refuse_type(const std::type_info& found, const std::type_info& wanted);

  std::unique_ptr<virtual_worker> worker_;
};

/// Writes dialogue(), and last the faults that no checkpoint has met.
std::ostream& operator<<(std::ostream& out, const daemon& source);

}  // namespace kclxx::testing
