// SPDX-License-Identifier: Apache-2.0
#include "runtime/user_tasks.hpp"

#include <exception>
#include <system_error>
#include <utility>

#include "io/signals.hpp"

namespace kclxx::runtime {

user_tasks::user_tasks(const run_options& options, int log_descriptor)
    : log_(options.log),
      level_(options.logging.level),
      lines_(std::make_shared<log_thread>(log_descriptor, options.logging)) {}

user_tasks::~user_tasks() {
  if (stop_thread_.joinable()) stop_thread_.detach();
}

void user_tasks::run(std::function<void()> task) {
  try {
    thread_.post(std::move(task));
  } catch (const std::exception&) {
    without_thread_.push_back(std::move(task));
  }
}

/// A stop_callback may want what a callback holds, or never return: a thread of its own runs it.
void user_tasks::request_stop() {
  try {
    const io::signal_block block;
    stop_thread_ = std::thread([source = stop_]() mutable { source.request_stop(); });
    while (!stop_.stop_requested()) std::this_thread::yield();
  } catch (const std::system_error&) {
    without_thread_.emplace_back([source = stop_]() mutable { source.request_stop(); });
  }
}

std::vector<std::function<void()>> user_tasks::take_without_thread() {
  return std::exchange(without_thread_, {});
}

void user_tasks::log(const log_entry& entry) {
  if (entry.level < level_) return;
  if (!log_) return log_to_descriptor(entry);
  try {
    thread_.post([lines = lines_, write = log_, entry] {
      try {
        write(entry);
      } catch (...) {
        lines->write(entry);
      }
    });
  } catch (const std::exception&) {  // no thread, no memory
    log_to_descriptor(entry);
  }
}

void user_tasks::finish() {
  thread_.drain(time_point::max());
  if (stop_thread_.joinable()) stop_thread_.join();
}

void user_tasks::abandon() {
  thread_.abandon();
  lines_->abandon();
}

}  // namespace kclxx::runtime
