// SPDX-License-Identifier: Apache-2.0
#include <ostream>
#include <stdexcept>
#include <utility>

#include <kclxx/testing/daemon.hpp>

#include "testing/simulation.hpp"

namespace kclxx::testing {

using protocol::action_kind;

daemon::daemon(processor_factory make_processor, const run_options& options, daemon_options with)
    : simulation_(
          std::make_unique<simulation>(std::move(make_processor), options, std::move(with))) {}

daemon::daemon(std::unique_ptr<simulation> successor) : simulation_(std::move(successor)) {}
daemon::daemon(daemon&&) noexcept = default;
daemon& daemon::operator=(daemon&&) noexcept = default;
daemon::~daemon() = default;

daemon& daemon::initialize(std::string_view shard_id, const sequence_position& start) {
  simulation_->initialize(shard_id, start);
  return *this;
}

daemon& daemon::deliver(const std::vector<std::string>& payloads,
                        std::optional<milliseconds> millis_behind_latest) {
  simulation_->deliver("deliver", [&](delivered_records& to) {
    return to.add_payloads(payloads, simulation_->arrival(), millis_behind_latest);
  });
  return *this;
}

daemon& daemon::deliver_records(const std::vector<record::fields>& records,
                                std::optional<milliseconds> millis_behind_latest) {
  simulation_->deliver("deliver_records", [&](delivered_records& to) {
    return to.add(records, millis_behind_latest);
  });
  return *this;
}

daemon& daemon::deliver_aggregate(const std::vector<std::string>& payloads,
                                  std::optional<milliseconds> millis_behind_latest) {
  simulation_->deliver("deliver_aggregate", [&](delivered_records& to) {
    return to.add_aggregate(payloads, simulation_->arrival(), millis_behind_latest);
  });
  return *this;
}

daemon& daemon::lose_lease() {
  simulation_->call("lose_lease", action_kind::lease_lost);
  return *this;
}

daemon& daemon::end_shard() {
  simulation_->call("end_shard", action_kind::shard_ended);
  return *this;
}

daemon& daemon::request_shutdown() {
  simulation_->call("request_shutdown", action_kind::shutdown_requested);
  return *this;
}

daemon& daemon::send_unknown_action(std::string_view name) {
  simulation_->send_unknown_action(name);
  return *this;
}

daemon& daemon::end_input() {
  simulation_->end_input();
  return *this;
}

daemon& daemon::advance(milliseconds time) {
  simulation_->advance(time);
  return *this;
}

daemon& daemon::crash() {
  simulation_->crash();
  return *this;
}

daemon& daemon::resume() {
  simulation_->resume();
  return *this;
}

daemon& daemon::fail_next_checkpoint(std::string_view exception, int times) {
  simulation_->fail_next_checkpoint(exception, times);
  return *this;
}

daemon& daemon::lose_lease_silently() {
  simulation_->lose_lease_silently();
  return *this;
}

daemon daemon::start_successor() { return daemon(simulation_->start_successor()); }

daemon& daemon::end_input_in_next_callback() {
  simulation_->end_input_in_next_callback();
  return *this;
}

const std::vector<sequence_position>& daemon::checkpoints() const noexcept {
  return simulation_->seen().checkpoints();
}

const sequence_position& daemon::persisted() const noexcept {
  return simulation_->lease().checkpoint();
}

const std::vector<checkpoint_attempt>& daemon::attempts() const noexcept {
  return simulation_->seen().attempts();
}

const std::vector<log_entry>& daemon::log() const noexcept { return simulation_->seen().log(); }

const std::vector<std::string>& daemon::callbacks() const noexcept {
  return simulation_->seen().callbacks();
}

std::optional<kclxx::exit_status> daemon::exit_status() const noexcept {
  return simulation_->child().status();
}

std::exception_ptr daemon::thrown() const noexcept { return simulation_->thrown(); }

bool daemon::stop_requested() const noexcept { return simulation_->child().stop_requested(); }

std::chrono::steady_clock::time_point daemon::now() const noexcept {
  return simulation_->clock().now();
}

const std::string& daemon::dialogue() const noexcept { return simulation_->seen().dialogue(); }

record_processor& daemon::any_processor() const {
  record_processor* const found = simulation_->child().processor();
  if (found == nullptr) {
    throw std::logic_error("processor: there is none before initialize and after a crash");
  }
  return *found;
}

std::ostream& operator<<(std::ostream& out, const daemon& of) { return out << of.dialogue(); }

}  // namespace kclxx::testing
