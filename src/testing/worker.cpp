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

worker::worker(processor_factory make_processor, const run_options& options,
               worker_options settings)
    : worker_(std::make_unique<virtual_worker>(std::move(make_processor), options,
                                               std::move(settings))) {}

worker::worker(std::unique_ptr<virtual_worker> successor) : worker_(std::move(successor)) {}
worker::worker(worker&&) noexcept = default;
worker& worker::operator=(worker&&) noexcept = default;
worker::~worker() = default;

worker& worker::initialize(std::string_view shard_id, const sequence_position& start) {
  worker_->initialize(shard_id, start);
  return *this;
}

worker& worker::deliver(const std::vector<std::string>& payloads,
                        std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver", [&](delivered_records& records) {
    return records.add_payloads(payloads, false, worker_->arrival(), millis_behind_latest);
  });
  return *this;
}

worker& worker::deliver_records(const std::vector<record::fields>& records,
                                std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver_records", [&](delivered_records& target) {
    return target.add(records, millis_behind_latest);
  });
  return *this;
}

worker& worker::deliver_aggregate(const std::vector<std::string>& payloads,
                                  std::optional<milliseconds> millis_behind_latest) {
  worker_->deliver("deliver_aggregate", [&](delivered_records& records) {
    return records.add_payloads(payloads, true, worker_->arrival(), millis_behind_latest);
  });
  return *this;
}

worker& worker::lose_lease() {
  worker_->call("lose_lease", action_kind::lease_lost);
  return *this;
}

worker& worker::end_shard() {
  worker_->call("end_shard", action_kind::shard_ended);
  return *this;
}

worker& worker::request_shutdown() {
  worker_->call("request_shutdown", action_kind::shutdown_requested);
  return *this;
}

worker& worker::end_input() {
  worker_->end_input();
  return *this;
}

worker& worker::advance(milliseconds time) {
  worker_->advance(time);
  return *this;
}

worker& worker::crash() {
  worker_->crash();
  return *this;
}

worker& worker::resume() {
  worker_->resume();
  return *this;
}

worker& worker::fail_next_checkpoint(std::string_view exception, int times) {
  worker_->fail_next_checkpoint(exception, times);
  return *this;
}

worker& worker::lose_lease_silently() {
  worker_->lose_lease_silently();
  return *this;
}

worker worker::start_successor() { return worker(worker_->start_successor()); }

worker& worker::end_input_in_next_callback() {
  worker_->end_input_in_next_callback();
  return *this;
}

const std::vector<sequence_position>& worker::checkpoints() const noexcept {
  return worker_->seen().checkpoints();
}

const sequence_position& worker::persisted() const noexcept {
  return worker_->lease().checkpoint();
}

const std::vector<worker::checkpoint_attempt>& worker::attempts() const noexcept {
  return worker_->seen().attempts();
}

const std::vector<log_entry>& worker::log() const noexcept { return worker_->seen().log(); }

const std::vector<std::string>& worker::callbacks() const noexcept {
  return worker_->seen().callbacks();
}

std::optional<kclxx::exit_status> worker::exit_status() const noexcept {
  return worker_->child().status();
}

std::exception_ptr worker::thrown() const noexcept { return worker_->thrown(); }

bool worker::is_running() const noexcept {
  return !worker_->child().is_gone() && !worker_->child().status();
}

bool worker::stop_requested() const noexcept { return worker_->child().stop_requested(); }

bool worker::worker_stop_requested() const noexcept { return worker_->is_asked_to_stop(); }

std::chrono::steady_clock::time_point worker::now() const noexcept {
  return worker_->clock().now();
}

const std::string& worker::dialogue() const noexcept { return worker_->seen().dialogue(); }

record_processor& worker::any_processor() const {
  record_processor* const found = worker_->child().processor();
  if (found == nullptr) {
    throw std::logic_error("processor: there is none before initialize and after a crash");
  }
  return *found;
}

void worker::refuse_type(const std::type_info& found, const std::type_info& wanted) {
  throw std::logic_error("processor: the factory made a " + name_of(found) + ", not a " +
                         name_of(wanted));
}

std::ostream& operator<<(std::ostream& out, const worker& source) {
  return out << source.dialogue() << source.worker_->unmet_faults();
}

}  // namespace kclxx::testing
