// SPDX-License-Identifier: Apache-2.0
#include "tool/feed/fed_shard.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "io/line_writer.hpp"
#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/lockstep/checked_process.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/text.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::tool {

namespace {

using namespace std::chrono_literals;
using transcript::entry_kind;

// What the reader is ahead of a child, and what is kept for the next child.
constexpr std::size_t most_waiting = std::size_t{16} << 20;
constexpr std::size_t most_uncovered = std::size_t{256} << 20;
constexpr std::size_t most_in_line = std::size_t{8} << 20;  // of data
// As the daemon: it waits without a limit.
constexpr time_limits unlimited{std::chrono::hours(24 * 365), std::chrono::hours(24 * 365)};
constexpr int most_deaths = 3;  // one after another, with nothing covered

std::size_t size_of(const fed_line& line) { return line.data.size() + line.key.size() + 100; }

/// A child whose dialogue is written into a transcript.
class recorded_process final : public checked_process {
 public:
  recorded_process(const std::vector<std::string>& command, child_dialogue::error_handler on_error,
                   const std::string& file, const std::string& shard)
      : checked_process(command, unlimited.step, std::move(on_error)),
        file_(file, output_file::access::owner),
        writer_(file_) {
    writer_.write(transcript::header{
        shard, transcript::format_time(std::chrono::system_clock::now()), {command.front()}});
  }

  bool send(std::string_view bytes) override {
    write(entry_kind::daemon_line, bytes.substr(0, bytes.size() - 1));
    return checked_process::send(bytes);
  }
  bool answer(std::string_view bytes) override {
    write(entry_kind::daemon_line, bytes.substr(0, bytes.size() - 1));
    return checked_process::answer(bytes);
  }
  child_output next_line(std::chrono::milliseconds limit) override {
    child_output next = checked_process::next_line(limit);
    if (next.what == child_output::kind::line) write(entry_kind::child_line, next.text);
    if (next.what == child_output::kind::end_of_output && !std::exchange(has_ended_, true)) {
      write(entry_kind::end_of_output, {});
    }
    return next;
  }
  void close_input() override {
    write(entry_kind::end_of_input, {});
    checked_process::close_input();
  }
  std::optional<child_exit> wait_end(std::chrono::milliseconds limit) override {
    const auto end = checked_process::wait_end(limit);
    if (end) {
      const bool was_killed = end->signal != 0;
      write(was_killed ? entry_kind::killed : entry_kind::exit, {},
            was_killed ? end->signal : end->status);
    }
    return end;
  }

 private:
  void write(entry_kind kind, std::string_view line, int number = 0) {
    const auto since = std::chrono::steady_clock::now() - began_;
    transcript::entry one{std::chrono::duration_cast<std::chrono::microseconds>(since), kind, line};
    one.number = number;
    writer_.write(one);
  }

  output_file file_;
  transcript::writer writer_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool has_ended_ = false;
};

sequence_position position_at(std::uint64_t number) {
  return number == 0 ? sequence_position("TRIM_HORIZON")
                     : sequence_position(std::to_string(number));
}

/// How many lines a position covers. All of the shard's positions are numbers of lines.
std::uint64_t number_at(const sequence_position& position) {
  return position.is_number() ? std::stoull(std::string(position.sequence_number())) : 0;
}

}  // namespace

std::string shard_name(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return "shardId-" + std::string(12 - digits.size(), '0') + digits;
}

std::string position_file(const feed_options& options, const std::string& shard) {
  return options.state + "/" + shard + ".position";
}

fed_shard::fed_shard(std::string id, const feed_options& options, std::uint64_t covered)
    : id_(std::move(id)),
      options_(options),
      begin_(covered),
      delivered_(covered),
      covered_(covered) {}

void fed_shard::put(std::vector<fed_line> lines) {
  std::unique_lock lock(mutex_);
  for (fed_line& one : lines) {
    if (is_stopped_) return;
    if (passed_over_ < begin_) {
      ++passed_over_;
      continue;
    }
    changed_.wait(lock, [this] { return waiting_bytes_ < most_waiting || is_stopped_; });
    ++put_;
    waiting_bytes_ += size_of(one);
    waiting_.push_back(std::move(one));
    if (waiting_bytes_ >= most_waiting) changed_.notify_all();
  }
  changed_.notify_all();
}

void fed_shard::end_input() {
  const std::lock_guard lock(mutex_);
  input_ended_ = true;
  changed_.notify_all();
}

void fed_shard::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

void fed_shard::run() {
  try {
    for (bool is_over = false; !is_over;) {
      const int before = deaths_;
      play();
      has_given_up_ = deaths_ > before && (!options_.restarts || deaths_in_row_ == most_deaths);
      const std::lock_guard lock(mutex_);
      is_over = deaths_ == before || has_given_up_ || is_stopped_;
    }
  } catch (...) {
    error_ = std::current_exception();
    has_given_up_ = true;
  }
  stop();  // whoever puts lines does not wait
}

// One child.
void fed_shard::play() {
  whole_lines error;
  const auto on_error = [&error](std::string_view text) { error.take(text); };
  std::unique_ptr<checked_child> child;
  ++lives_;
  if (options_.transcripts.empty()) {
    child = std::make_unique<checked_process>(options_.command, unlimited.step, on_error);
  } else {
    const std::string life = lives_ == 1 ? "" : "-" + std::to_string(lives_);
    child = std::make_unique<recorded_process>(
        options_.command, on_error, options_.transcripts + "/" + id_ + life + ".jsonl", id_);
  }
  const sequence_position start = position_at(covered_);
  lockstep_daemon daemon(std::move(child), id_, unlimited, start);
  daemon.row.set_fault([this](const sequence_position& position) { return store(position); });
  serve(daemon);
  if (!daemon.noise.empty()) {
    say("the daemon skips this line of the child: " + in_quotes(daemon.noise.front().line) + " (" +
        daemon.noise.front().why + ")" + (daemon.noise.size() > 1 ? ", and others" : ""));
  }
  if (!daemon.refused.empty()) say(daemon.refused);
}

void fed_shard::serve(lockstep_daemon& daemon) {
  const sequence_position& start = daemon.row.checkpoint();
  reaction last =
      daemon.attempt(daemon.initialize_at(start.sequence_number(), start.sub_sequence_number()));
  bool is_at_end = false;
  while (last.is_answered && !is_at_end) {
    const next what = take_batch();
    is_at_end = what == next::end;
    if (what == next::nothing) {
      if (!daemon.ends_within(0ms)) continue;
      return on_death("no action was open, and " + daemon.end_text());
    }
    last = daemon.attempt(is_at_end ? shutdown_requested() : action_of_batch());
    if (!is_at_end) {
      if (last.is_answered) delivered_ += batch_.size();
      if (options_.restarts) {
        for (fed_line& one : batch_) {
          uncovered_bytes_ += size_of(one);
          uncovered_.push_back(std::move(one));
        }
      }
      batch_.clear();
    }
    on_progress(daemon);
  }
  const auto end = daemon.leave();
  if (!last.is_answered) return on_death(last.seen);
  if (end && !end->is_success()) on_death("after shutdownRequested " + daemon.end_text());
}

fed_shard::next fed_shard::take_batch() {
  std::unique_lock lock(mutex_);
  const bool is_full = uncovered_bytes_ >= most_uncovered;
  const auto has_something = [&] {
    return is_stopped_ || (!is_full && (input_ended_ || !waiting_.empty()));
  };
  // Not for ever: a child that dies meanwhile is found.
  if (!changed_.wait_for(lock, is_full ? 1s : 200ms, has_something)) {
    throw_if_cancelled();
    if (!is_full) return next::nothing;
    if (!std::exchange(has_told_limit_, true)) {
      say("waits for a checkpoint: 256 MiB of lines are kept that none covers");
    }
    return next::batch;  // of no record, in which the child can ask for one
  }
  if (is_stopped_) return next::end;
  std::size_t bytes = 0;
  while (!waiting_.empty() && batch_.size() < options_.batch && bytes < most_in_line) {
    bytes += waiting_.front().data.size();
    waiting_bytes_ -= size_of(waiting_.front());
    batch_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  changed_.notify_all();
  return batch_.empty() ? next::end : next::batch;
}

action fed_shard::action_of_batch() const {
  std::vector<std::string> numbers;
  numbers.reserve(batch_.size());
  std::vector<record> records;
  records.reserve(batch_.size());
  for (const fed_line& one : batch_) {
    numbers.push_back(std::to_string(delivered_ + numbers.size() + 1));
    records.emplace_back(record::fields{one.data, one.key, numbers.back(), 0, one.arrived});
  }
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const auto behind =
      batch_.empty() ? 0 : std::max<std::int64_t>(0, (now - batch_.back().arrived).count());
  action batch{protocol::action_kind::process_records, "processRecords",
               daemon_model::process_records_line(records, behind)};
  if (!records.empty()) batch.largest = records.back().position();
  return batch;
}

// Before the child hears of it, as the daemon's own.
std::optional<std::string> fed_shard::store(const sequence_position& position) {
  if (options_.state.empty()) return std::nullopt;
  const std::string name = position_file(options_, id_);
  try {
    write_file(name + ".part", to_string(position) + "\n");
    if (std::rename((name + ".part").c_str(), name.c_str()) != 0) cannot_set_up(name, "made");
    return std::nullopt;
  } catch (const command_error& error) {
    if (!std::exchange(has_told_store_, true)) say(error.what());
    return "KinesisClientLibDependencyException";  // the lease table does not answer
  }
}

void fed_shard::on_progress(lockstep_daemon& daemon) {
  daemon.checkpoints.clear();
  const std::uint64_t reached = number_at(daemon.row.checkpoint());
  if (reached <= covered_) return;
  for (std::uint64_t i = covered_; i < reached && !uncovered_.empty(); ++i) {
    uncovered_bytes_ -= size_of(uncovered_.front());
    uncovered_.pop_front();
  }
  covered_ = reached;
  delivered_ = std::max(delivered_, covered_);
  deaths_in_row_ = 0;
}

void fed_shard::on_death(const std::string& what) {
  ++deaths_;
  ++deaths_in_row_;
  say("a child failed: " + what);
  if (!options_.restarts) return;
  if (deaths_in_row_ == most_deaths) {
    say("3 children have failed at the same place: no other one is started");
    return;
  }
  const std::lock_guard lock(mutex_);
  for (; !uncovered_.empty(); uncovered_.pop_back()) {
    waiting_bytes_ += size_of(uncovered_.back());
    waiting_.push_front(std::move(uncovered_.back()));
  }
  uncovered_bytes_ = 0;
  delivered_ = covered_;
}

void fed_shard::say(const std::string& what) const {
  const std::string line = "kclxx feed: " + id_ + ": " + printable(what) + "\n";
  const std::error_code ignored = io::write_all(STDERR_FILENO, line);  // other threads write, too
  static_cast<void>(ignored);
}

}  // namespace kclxx::tool
