// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <utility>

#include "host/conformance/script.hpp"
#include "protocol/base64.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::oracle {

using nlohmann::json;
using protocol::action_kind;

namespace {

/// The model between a script's calls and a script's child.
class player {
 public:
  player(const script& script)
      : script_(script),
        lease_(sequence_position(script.calls.front().sequence_number,
                                 script.calls.front().sub_sequence_number)),
        consumer_(lease_) {
    lease_.set_fault([this](const sequence_position&) -> std::optional<std::string> {
      const std::size_t attempt = attempts_++;
      if (attempt >= script_.store.size() || script_.store[attempt] == "ok") return std::nullopt;
      return script_.store[attempt];
    });
  }

  json play() {
    for (std::size_t i = 0; i < script_.calls.size(); ++i) {
      if (consumer_.has_worker_ended()) break;
      call_ = i;
      turn_ = 0;
      make(script_.calls[i]);
    }
    return std::move(events_);
  }

 private:
  void make(const call& call_to_make) {
    send(line_of(call_to_make));
    std::optional<sequence_position> largest;
    for (const record_fields& record : call_to_make.records) {
      const sequence_position position(record.sequence_number, record.sub_sequence_number);
      if (!largest || *largest < position) largest = position;
    }
    daemon_model::daemon_events out;
    consumer_.call(call_to_make.kind, protocol::action_name(call_to_make.kind), largest, out);
    take(out);
    deliver_lines();
    if (consumer_.is_waiting()) end_output();
  }

  std::string line_of(const call& call_to_make) const {
    switch (call_to_make.kind) {
      case action_kind::initialize:
        return daemon_model::initialize_line(
            call_to_make.shard_id,
            sequence_position(call_to_make.sequence_number, call_to_make.sub_sequence_number));
      case action_kind::process_records:
        return process_records_line(call_to_make);
      case action_kind::lease_lost:
      case action_kind::shard_ended:
      case action_kind::shutdown_requested:
        break;
    }
    return daemon_model::action_line(call_to_make.kind);
  }

  static std::string process_records_line(const call& call_to_make) {
    std::vector<std::string> data(call_to_make.records.size());
    std::vector<record> records;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const record_fields& from = call_to_make.records[i];
      record::fields fields;
      fields.sequence_number = from.sequence_number;
      fields.sub_sequence_number = from.sub_sequence_number;
      if (from.data) {
        data[i] = *from.data;
        data[i].resize(protocol::decode_base64(data[i].data(), data[i].size()).size);
        fields.data = std::string_view(data[i]);
      }
      if (from.partition_key) fields.partition_key = std::string_view(*from.partition_key);
      if (from.arrival) {
        fields.approximate_arrival_timestamp = std::chrono::milliseconds(*from.arrival);
      }
      records.emplace_back(fields);
    }
    return daemon_model::process_records_line(records, call_to_make.millis_behind_latest);
  }

  /// The daemon's line reaches the child, which takes its turn.
  void send(const std::string& line) {
    events_.push_back({{"send", line}});
    if (output_ended_ || call_ >= script_.child.size()) return;
    const auto& turns = script_.child[call_];
    if (turn_ >= turns.size()) return;
    unframed_ += turns[turn_].write;
    output_ended_ = turns[turn_].end;
    ++turn_;
  }

  void deliver_lines() {
    for (std::size_t end = unframed_.find('\n'); end != std::string::npos;
         end = unframed_.find('\n')) {
      const std::string line = unframed_.substr(0, end);
      unframed_.erase(0, end + 1);
      deliver(line);
    }
    if (output_ended_) end_output();
  }

  void deliver(const std::string& line) {
    daemon_model::daemon_events out;
    consumer_.on_line(line, out);
    take(out);
  }

  /// A line that is cut off by the end is a line, too.
  void end_output() {
    if (!output_ended_) events_.push_back({{"waits", true}});
    output_ended_ = true;
    if (!unframed_.empty()) deliver(std::exchange(unframed_, {}));
    daemon_model::daemon_events out;
    consumer_.on_end_of_output(out);
    take(out);
  }

  void take(const daemon_model::daemon_events& events) {
    for (const daemon_model::daemon_event& event : events) {
      std::visit([this](const auto& of_kind) { take(of_kind); }, event);
    }
    // After an ending the real call returns last of all.
    if (returned_) {
      events_.push_back({{"returns", protocol::action_name(*returned_)}});
      if (*returned_ == action_kind::shard_ended) {
        events_.push_back({{"shard_finished", is_finished_}});
      }
      returned_.reset();
    }
  }
  void take(const daemon_model::answered& event) {
    if (event.attempted) {
      events_.push_back({{"store",
                          {{"sequenceNumber", event.attempted->sequence_number()},
                           {"subSequenceNumber", event.attempted->sub_sequence_number()},
                           {"result", event.error.value_or("ok")}}}});
    }
    send(event.line);
  }
  void take(const daemon_model::skipped& event) {
    const auto line = daemon_model::parse_child_message(event.line);
    if (!std::holds_alternative<daemon_model::ignored_line>(line)) return;  // read, and passed over
    events_.push_back({{"skips", protocol::replace_invalid_utf8(event.line)}});
  }
  void take(const daemon_model::returned& event) { returned_ = event.kind; }
  void take(const daemon_model::failed& event) { returned_ = event.kind; }
  void take(const daemon_model::shard_end_not_checkpointed&) { is_finished_ = false; }
  void take(const daemon_model::close_input&) { events_.push_back({{"closes_input", true}}); }
  void take(const daemon_model::lost_line&) {}
  void take(const daemon_model::worker_ended&) { events_.push_back({{"worker_ends", true}}); }

  const script& script_;
  daemon_model::lease lease_;
  daemon_model::shard_consumer consumer_;
  json events_ = json::array();
  std::size_t attempts_ = 0;
  std::size_t call_ = 0;
  std::size_t turn_ = 0;
  std::string unframed_;
  bool output_ended_ = false;
  std::optional<action_kind> returned_;
  bool is_finished_ = true;
};

}  // namespace

json play_on_model(const script& script) { return player(script).play(); }

}  // namespace kclxx::oracle
