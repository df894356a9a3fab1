// SPDX-License-Identifier: Apache-2.0
#include "runtime/resident_shards.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "base/duration.hpp"
#include "base/environment.hpp"
#include "io/outlive_signals.hpp"
#include "io/stdio_guard.hpp"
#include "runtime/logger.hpp"
#include "runtime/shard_runtime.hpp"
#include "runtime/variables.hpp"
#include "sharing/resident.hpp"

namespace kclxx::runtime {

namespace {

template <class Result, class... Arguments>
void share(std::function<Result(Arguments...)>& function) {
  if (!function) return;
  auto shared = std::make_shared<std::function<Result(Arguments...)>>(std::move(function));
  function = [shared = std::move(shared)](Arguments... arguments) {
    return (*shared)(std::forward<Arguments>(arguments)...);
  };
}

/// Copies of the options have the user's functions in common: to copy or destroy one runs none of
/// the user's code, which the loop of all shards would wait for.
run_options with_shared_functions(run_options options) {
  share(options.log);
  share(options.metrics.own_metrics);
  return options;
}

/// A shard that kclxx-share has handed over.
class handed_session final : public sharing::shard_session {
 public:
  handed_session(const sharing::handed_shard& shard, io::event_loop& loop,
                 std::function<void()> on_stuck, const processor_factory& make_processor,
                 const run_options& options)
      : runtime_(make_runtime(configuration(shard, loop), make_processor, options,
                              variables_of(shard), std::move(on_stuck))),
        options_(options) {}

  exit_status serve() override {
    try {
      return runtime_->serve();
    } catch (const std::exception& error) {
      log_failure(options_, error);
      return exit_status::start_failed;
    }
  }
  void leave_loop() override { runtime_->dialogue().leave_loop(); }
  void end_input() override { runtime_->dialogue().end_input(); }

 private:
  static detail::environment variables_of(const sharing::handed_shard& shard) {
    return [&shard](const char* name) { return shard.variable(name); };
  }
  static shard_runtime::configuration configuration(const sharing::handed_shard& shard,
                                                    io::event_loop& loop) {
    io::enlarge_pipe(shard.input.get());
    return {.input = shard.input.get(),
            .output = shard.output.get(),
            .log = shard.error.get(),
            .names = names_in(variables_of(shard)),
            .daemon = daemon_in(variables_of(shard), shard.daemon),
            .shared_loop = &loop};
  }

  std::shared_ptr<shard_runtime> runtime_;
  const run_options& options_;
};

}  // namespace

exit_status run_resident(sharing::inheritance start, const processor_factory& make_processor,
                         const run_options& options) {
  if (!options.share_process) {
    sharing::refuse_shards(start, "run_options::share_process is false");
    return exit_status::ok;
  }
  const run_options shared_options = with_shared_functions(options);
  io::outlive_signals();
  const exit_status status = sharing::serve_shards(
      std::move(start),
      [&](const sharing::handed_shard& shard, io::event_loop& loop,
          std::function<void()> on_stuck) {
        return std::make_unique<handed_session>(shard, loop, std::move(on_stuck), make_processor,
                                                shared_options);
      },
      std::max(detail::clamped(options.grace_time), least_teardown));
  // A thread that was abandoned uses what the end of main destroys.
  if (status != exit_status::ok) std::_Exit(static_cast<int>(status));
  return status;
}

}  // namespace kclxx::runtime
