// SPDX-License-Identifier: Apache-2.0
#include "runtime/variables.hpp"

#include <string>
#include <utility>
#include <vector>

#include "io/daemon_process.hpp"
#include "observability/log_writer.hpp"
#include "observability/observation.hpp"

namespace kclxx::runtime {

shard_context::fields names_in(const detail::environment& variables) {
  return {.stream_name = variables("KCLXX_STREAM_NAME"),
          .application_name = variables("KCLXX_APPLICATION_NAME"),
          .worker_id = variables("KCLXX_WORKER_ID")};
}

std::optional<io::process_identity> daemon_in(const detail::environment& variables,
                                              const io::process_identity& parent) {
  return io::daemon_process(variables(io::daemon_variable), parent);
}

std::shared_ptr<shard_runtime> make_runtime(const shard_runtime::configuration& configuration,
                                            const processor_factory& make_processor,
                                            run_options options,
                                            const detail::environment& variables,
                                            std::function<void()> on_stuck) {
  std::vector<std::string> problems;
  options.logging = observability::with_environment(options.logging, variables, problems);
  options.metrics = observability::with_environment(options.metrics, variables, problems);
  auto made =
      std::make_shared<shard_runtime>(configuration, make_processor, options, std::move(on_stuck));
  made->dialogue().start_observation();
  for (const std::string& problem : problems) made->dialogue().log(log_level::warning, problem, {});
  return made;
}

}  // namespace kclxx::runtime
