// SPDX-License-Identifier: Apache-2.0
#include "runtime/user_tasks.hpp"

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/descriptor.hpp"
#include "io/signals.hpp"
#include "observability/log_writer.hpp"

namespace kclxx::runtime {

namespace {

/// A line may come late, when the descriptor is closed and its number is another file's. So lines
/// have a copy of their own; not of stderr, which nobody closes, and which may be led elsewhere.
std::shared_ptr<log_thread> make_lines(const log_options& options, int descriptor) {
  std::shared_ptr<const io::descriptor> copy;
  if (descriptor != STDERR_FILENO) {
    copy = std::make_shared<const io::descriptor>(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
    if (!copy->is_open()) throw std::system_error(errno, std::generic_category(), "a descriptor");
    descriptor = copy->get();
  }
  return std::make_shared<log_thread>(
      descriptor,
      [copy, output = std::make_shared<const observability::log_output>(options, descriptor)](
          const log_entry& entry) { output->write(entry); });
}

}  // namespace

user_tasks::user_tasks(const run_options& options, int log_descriptor)
    : level_(options.logging.level), lines_(make_lines(options.logging, log_descriptor)) {
  if (!options.log) return;
  log_ = std::make_unique<log_thread>(
      log_descriptor, [lines = lines_, write = options.log](const log_entry& entry) {
        try {
          write(entry);
        } catch (...) {
          lines->write(entry);
        }
      });
}

user_tasks::~user_tasks() {
  if (stop_thread_.joinable()) stop_thread_.detach();
}

/// A stop_callback may want what a callback holds, or never return: a thread of its own runs it.
void user_tasks::request_stop() {
  {
    const io::signal_block block;
    stop_thread_ = std::thread([source = stop_]() mutable { source.request_stop(); });
  }
  while (!stop_.stop_requested()) std::this_thread::yield();
}

void user_tasks::log(const log_entry& entry) {
  if (entry.level >= level_) (log_ ? *log_ : *lines_).write(entry);
}

void user_tasks::finish() {
  drain(time_point::max());
  if (stop_thread_.joinable()) stop_thread_.join();
}

void user_tasks::end_log_function() {
  if (!log_) return;
  log_->abandon();
  log_->drain(time_point::max());
}

void user_tasks::abandon() {
  thread_.abandon();
  if (log_) log_->abandon();
  lines_->abandon();
}

}  // namespace kclxx::runtime
