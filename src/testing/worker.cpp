// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cxxabi.h>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include <kclxx/testing/worker.hpp>

#include "testing/virtual_worker.hpp"

namespace kclxx::testing {

using protocol::action_kind;

namespace {

std::string name_of(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  return name ? name.get() : type.name();
}

}  // namespace

daemon::daemon(processor_factory make_processor, const run_options& options,
               daemon_options settings)
    : worker_(std::make_unique<virtual_worker>(std::move(make_processor), options,
                                               std::move(settings))) {}

daemon::daemon(std::unique_ptr<virtual_worker> successor) : worker_(std::move(successor)) {}
daemon::daemon(daemon&&) noexcept = default;
daemon& daemon::operator=(daemon&&) noexcept = default;
daemon::~daemon() = default;

daemon& daemon::initialize(std::string_view shard_id, const sequence_position& start) {
  worker_->initialize(shard_id, start);
  return *this;
}

daemon& daemon::deliver(const std::vector<std::string>& payloads,
                        std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver", [&](delivered_records& records) {
    return records.add_payloads(payloads, false, worker_->arrival(), millis_behind_latest);
  });
  return *this;
}

daemon& daemon::deliver_records(const std::vector<record::fields>& records,
                                std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver_records", [&](delivered_records& target) {
    return target.add(records, millis_behind_latest);
  });
  return *this;
}

daemon& daemon::deliver_aggregate(const std::vector<std::string>& payloads,
                                  std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver_aggregate", [&](delivered_records& records) {
    return records.add_payloads(payloads, true, worker_->arrival(), millis_behind_latest);
  });
  return *this;
}

daemon& daemon::lose_lease() {
  worker_->call("lose_lease", action_kind::lease_lost);
  return *this;
}

daemon& daemon::end_shard() {
  worker_->call("end_shard", action_kind::shard_ended);
  return *this;
}

daemon& daemon::request_shutdown() {
  worker_->call("request_shutdown", action_kind::shutdown_requested);
  return *this;
}

daemon& daemon::end_input() {
  worker_->end_input();
  return *this;
}

daemon& daemon::advance(milliseconds time) {
  worker_->advance(time);
  return *this;
}

daemon& daemon::crash() {
  worker_->crash();
  return *this;
}

daemon& daemon::resume() {
  worker_->resume();
  return *this;
}

daemon& daemon::fail_next_checkpoint(std::string_view exception, int times) {
  worker_->fail_next_checkpoint(exception, times);
  return *this;
}

daemon& daemon::lose_lease_silently() {
  worker_->lose_lease_silently();
  return *this;
}

daemon daemon::start_successor() { return daemon(worker_->start_successor()); }

daemon& daemon::end_input_in_next_callback() {
  worker_->end_input_in_next_callback();
  return *this;
}

const std::vector<sequence_position>& daemon::checkpoints() const noexcept {
  return worker_->seen().checkpoints();
}

const sequence_position& daemon::persisted() const noexcept {
  return worker_->lease().checkpoint();
}

const std::vector<daemon::checkpoint_attempt>& daemon::attempts() const noexcept {
  return worker_->seen().attempts();
}

const std::vector<log_entry>& daemon::log() const noexcept { return worker_->seen().log(); }

const std::vector<std::string>& daemon::callbacks() const noexcept {
  return worker_->seen().callbacks();
}

std::optional<kclxx::exit_status> daemon::exit_status() const noexcept {
  return worker_->child().status();
}

std::exception_ptr daemon::thrown() const noexcept { return worker_->thrown(); }

bool daemon::is_running() const noexcept {
  return !worker_->child().is_gone() && !worker_->child().status();
}

bool daemon::stop_requested() const noexcept { return worker_->child().stop_requested(); }

bool daemon::worker_stop_requested() const noexcept { return worker_->is_asked_to_stop(); }

std::chrono::steady_clock::time_point daemon::now() const noexcept {
  return worker_->clock().now();
}

const std::string& daemon::dialogue() const noexcept { return worker_->seen().dialogue(); }

record_processor& daemon::any_processor() const {
  record_processor* const found = worker_->child().processor();
  if (found == nullptr) {
    throw std::logic_error("processor: there is none before initialize and after a crash");
  }
  return *found;
}

void daemon::refuse_type(const std::type_info& found, const std::type_info& wanted) {
  throw std::logic_error("processor: the factory made a " + name_of(found) + ", not a " +
                         name_of(wanted));
}

std::ostream& operator<<(std::ostream& out, const daemon& source) {
  return out << source.dialogue() << source.worker_->unmet_faults();
}

}  // namespace kclxx::testing
