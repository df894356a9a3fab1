// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_shard.hpp"

#include <csignal>
#include <optional>
#include <poll.h>
#include <variant>

#include "tool/process/child_dialogue.hpp"
#include "tool/process/interruption.hpp"
#include "tool/process/poll.hpp"
#include "tool/replay/shard_replay.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::cli {

namespace {

using event_kind = child_dialogue::event_kind;
using clock = child_dialogue::clock;

/// A file that says how far it was read.
class watched_file : public transcript::byte_source {
 public:
  watched_file(const std::string& name, shard_progress& progress)
      : file_(name), progress_(progress) {}
  std::size_t read(char* to, std::size_t size) override {
    const std::size_t n = file_.read(to, size);
    progress_.read_bytes.fetch_add(n, std::memory_order_relaxed);
    return n;
  }

 private:
  input_file file_;
  shard_progress& progress_;
};

/// Errors: interrupted.
void sleep_until(clock::time_point deadline) {
  pollfd interruption[] = {{interruption_descriptor(), POLLIN, 0}};
  if (poll_until(interruption, deadline)) throw_if_interrupted();
}

/// The effects of one shard's replay.
class shard_run {
 public:
  shard_run(transcript::reader& from, const std::vector<std::string>& command,
            const replay::options& how, shard_progress& progress)
      : reader_(from), plan_(how), dialogue_(command), progress_(progress) {}

  replay::summary run();

 private:
  void step(replay::shard_replay::want what);
  void read_entry();
  bool take_what_is_there();
  void take(const child_dialogue::event& event);
  void await_exit();
  void carry_out();

  transcript::reader& reader_;
  replay::shard_replay plan_;
  child_dialogue dialogue_;
  shard_progress& progress_;
  transcript::entry entry_;
  std::size_t entry_size_ = 0;
  replay::effects effects_;
  bool output_ended_ = false;
};

replay::summary shard_run::run() {
  using want = replay::shard_replay::want;
  for (want next = plan_.wants(); next != want::nothing; next = plan_.wants()) {
    step(next);
    carry_out();
    progress_.records.store(plan_.result().counts.records, std::memory_order_relaxed);
  }
  return plan_.result();
}

void shard_run::step(replay::shard_replay::want what) {
  using want = replay::shard_replay::want;
  switch (what) {
    case want::entry:
      if (!take_what_is_there()) read_entry();
      break;
    case want::child: {
      const auto event = dialogue_.next(plan_.deadline());
      // A child that goes on printing has not answered either.
      const bool is_late = event.what == event_kind::line && clock::now() >= plan_.deadline();
      is_late ? plan_.on_timeout(clock::now(), effects_) : take(event);
      break;
    }
    case want::sent:
      take(dialogue_.next_sent(plan_.deadline()));
      break;
    case want::pause:
      sleep_until(plan_.deadline());
      plan_.on_time(clock::now(), effects_);
      break;
    case want::child_exit:
      await_exit();
      break;
    case want::nothing:
      break;
  }
}

void shard_run::read_entry() {
  try {
    const bool has_more = reader_.next(entry_);
    entry_size_ = entry_.line.size();
    const auto now = clock::now();
    if (has_more) {
      plan_.on_entry(entry_, now, effects_);
    } else {
      plan_.on_end_of_transcript(now, effects_);
    }
  } catch (const transcript::transcript_error& error) {
    plan_.on_damage(error.line_number(), error.problem(), clock::now(), effects_);
  }
}

// While the transcript is read ahead the child's status may come: its time counts, not the
// reading's. Never waits. Reading ahead of short lines takes less time than to ask.
bool shard_run::take_what_is_there() {
  constexpr std::size_t short_line = std::size_t{64} << 10;
  if (output_ended_ || !plan_.can_take_line() || entry_size_ < short_line) return false;
  const auto event = dialogue_.next(clock::time_point());
  if (event.what == event_kind::timed_out) return false;
  take(event);
  return true;
}

void shard_run::take(const child_dialogue::event& event) {
  const auto now = clock::now();
  switch (event.what) {
    case event_kind::line:
      plan_.on_child_line(event.line, now, effects_);
      break;
    case event_kind::sent:
      plan_.on_sent(now, effects_);
      break;
    case event_kind::input_broken:
      plan_.on_input_broken(now, effects_);
      break;
    case event_kind::end_of_output:
      output_ended_ = true;
      plan_.on_end_of_output(now, effects_);
      break;
    case event_kind::timed_out:
      plan_.on_timeout(now, effects_);
      break;
  }
}

void shard_run::await_exit() {
  const auto how = dialogue_.process().wait_until(plan_.deadline());
  if (how) {
    plan_.on_exit(how->status, how->signal);
  } else {
    plan_.on_timeout(clock::now(), effects_);
  }
}

void shard_run::carry_out() {
  for (replay::effect& one : effects_) {
    if (std::holds_alternative<replay::write_entry>(one)) {
      plan_.on_early_output(dialogue_.unread());
      dialogue_.send(entry_.line);
    } else if (auto* own = std::get_if<replay::write_line>(&one)) {
      dialogue_.send_copy(std::move(own->line));
    } else if (std::holds_alternative<replay::close_input>(one)) {
      dialogue_.close_input();
    } else {
      dialogue_.process().kill(SIGKILL);
    }
  }
  effects_.clear();
}

}  // namespace

replay::summary replay_shard(const std::string& file, const std::vector<std::string>& command,
                             const replay::options& how, shard_progress& progress) {
  watched_file source(file, progress);
  const auto damaged = [](std::size_t line_number, std::string what) {
    replay::summary nothing;
    nothing.damage = replay::remark{line_number, std::move(what), {}};
    return nothing;
  };
  std::optional<transcript::reader> reader;
  try {
    reader.emplace(source, file);
  } catch (const transcript::transcript_error& error) {
    return damaged(error.line_number(), error.problem());
  }
  if (how.expected == replay::expectation::answers && !reader->head()) {
    return damaged(1,
                   "the file has only the daemon's lines, so --expect has nothing to compare "
                   "with; --expect-final has");
  }
  if (how.expected != replay::expectation::none && reader->head() &&
      reader->head()->command.empty()) {
    return damaged(1, "it was made without a child, so there is nothing to compare with");
  }
  return shard_run(*reader, command, how, progress).run();
}

}  // namespace kclxx::cli
