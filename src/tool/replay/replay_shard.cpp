// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_shard.hpp"

#include <csignal>
#include <optional>
#include <stop_token>
#include <utility>
#include <variant>

#include "tool/process/cancellation.hpp"
#include "tool/process/child_dialogue.hpp"
#include "tool/replay/replay_plan.hpp"
#include "tool/transcript/read_ahead.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace {

using event_kind = child_dialogue::event_kind;
using clock = child_dialogue::clock;

/// A file that reports how far it was read.
class watched_file : public transcript::byte_source {
 public:
  watched_file(const std::string& name, std::stop_token stop, shard_progress& progress)
      : file_(name, std::move(stop)), progress_(progress) {}
  std::size_t read(char* to, std::size_t size) override {
    const std::size_t n = file_.read(to, size);
    progress_.read_bytes.fetch_add(n, std::memory_order_relaxed);
    return n;
  }

 private:
  input_file file_;
  shard_progress& progress_;
};

/// The effects of one shard's replay.
class shard_replay {
 public:
  /// `stop` ends the reading of the transcript.
  shard_replay(transcript::reader& from, std::stop_source stop,
               const std::vector<std::string>& command, const replay::options& how,
               std::optional<replay::legacy> legacy, shard_progress& progress)
      : stop_(std::move(stop)),
        plan_(legacy ? replay::replay_plan(how, *std::move(legacy)) : replay::replay_plan(how)),
        dialogue_(command),
        progress_(progress),
        transcript_(from, [this] { dialogue_.wake(); }) {}
  ~shard_replay() { stop_.request_stop(); }
  shard_replay(const shard_replay&) = delete;
  shard_replay& operator=(const shard_replay&) = delete;

  void run();
  [[nodiscard]] replay::replay_plan& plan() noexcept { return plan_; }

 private:
  void step(replay::replay_plan::want what);
  void take_entry();
  void await_event(child_dialogue::output how);
  void await_time();
  void await_exit();
  void carry_out();

  std::stop_source stop_;
  replay::replay_plan plan_;
  child_dialogue dialogue_;
  shard_progress& progress_;
  transcript::read_ahead transcript_;
  const transcript::summarized_entry* entry_ = nullptr;  // the last one
  replay::effects effects_;
  bool output_ended_ = false;
};

void shard_replay::run() {
  using want = replay::replay_plan::want;
  for (want next = plan_.wants(); next != want::nothing; next = plan_.wants()) {
    step(next);
    carry_out();
    progress_.records.store(plan_.result().counts.records, std::memory_order_relaxed);
  }
}

void shard_replay::step(replay::replay_plan::want what) {
  using want = replay::replay_plan::want;
  switch (what) {
    case want::entry:
      return take_entry();
    case want::child:
      return await_event(child_dialogue::output::is_read);
    case want::sent:
      return await_event(child_dialogue::output::stays_unread);
    case want::pause:
      return await_time();
    case want::child_exit:
      return await_exit();
    case want::nothing:
      return;
  }
}

// While the transcript is read the child is listened to, so the source's time is not the child's.
void shard_replay::take_entry() {
  using state = transcript::read_ahead::state;
  try {
    switch (transcript_.next(entry_)) {
      case state::has_entry:
        return plan_.on_entry(*entry_, clock::now(), effects_);
      case state::has_ended:
        return plan_.on_end_of_transcript(clock::now(), effects_);
      case state::is_reading: {
        const bool reads = plan_.can_take_line() && !output_ended_;
        return await_event(reads ? child_dialogue::output::is_read
                                 : child_dialogue::output::stays_unread);
      }
    }
  } catch (const transcript::transcript_error& error) {
    plan_.on_damage(error.line_number(), error.problem(), clock::now(), effects_);
  }
}

void shard_replay::await_event(child_dialogue::output how) {
  const auto event = dialogue_.next(plan_.deadline(), how);
  switch (event.what) {
    case event_kind::line:
      // A child that keeps printing has not answered either.
      if (event.at >= plan_.deadline()) return plan_.on_timeout(event.at, effects_);
      return plan_.on_child_line(event.line, event.at, effects_);
    case event_kind::sent:
      return plan_.on_sent(event.at, effects_);
    case event_kind::input_broken:
      return plan_.on_input_broken(event.at, effects_);
    case event_kind::end_of_output:
      output_ended_ = true;
      return plan_.on_end_of_output(event.at, effects_);
    case event_kind::woken:
      return;  // the transcript can be read on
    case event_kind::timed_out:
      return plan_.on_timeout(event.at, effects_);
  }
}

void shard_replay::await_time() {
  const auto event = dialogue_.next(plan_.deadline(), child_dialogue::output::stays_unread);
  if (event.what == event_kind::timed_out) plan_.on_time(event.at, effects_);
}

void shard_replay::await_exit() {
  if (const auto how = dialogue_.wait_exit(plan_.deadline())) {
    plan_.on_exit(how->status, how->signal);
  } else {
    plan_.on_timeout(clock::now(), effects_);
  }
}

void shard_replay::carry_out() {
  for (replay::effect& effect : effects_) {
    if (std::holds_alternative<replay::write_entry>(effect)) {
      plan_.on_early_output(dialogue_.unread());
      dialogue_.send(entry_->content.line);
    } else if (auto* own = std::get_if<replay::write_line>(&effect)) {
      dialogue_.send_copy(std::move(own->line));
    } else if (std::holds_alternative<replay::close_input>(effect)) {
      dialogue_.close_input();
    } else {
      dialogue_.kill(SIGKILL);
    }
  }
  effects_.clear();
}

replay::summary damaged(std::size_t line_number, std::string what) {
  replay::summary nothing;
  nothing.damage = replay::diagnostic{line_number, std::move(what), {}};
  return nothing;
}

/// Plays the transcript against one child, the first or a successor. What that leaves goes to
/// `legacy`.
replay::summary play_to_child(const std::string& file, const std::vector<std::string>& command,
                              const replay::options& how, std::optional<replay::legacy>& legacy,
                              shard_progress& progress) {
  std::stop_source stop;
  const std::stop_callback on_cancelled(cancellation_token(), [&] { stop.request_stop(); });
  progress.read_bytes.store(0, std::memory_order_relaxed);
  watched_file source(file, stop.get_token(), progress);
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
  shard_replay one(*reader, stop, command, how, std::exchange(legacy, std::nullopt), progress);
  one.run();
  legacy = one.plan().take_legacy();
  return one.plan().result();
}

}  // namespace

replay::summary replay_shard(const std::string& file, const std::vector<std::string>& command,
                             const replay::options& how, shard_progress& progress) {
  std::optional<replay::legacy> legacy;
  for (;;) {
    auto result = play_to_child(file, command, how, legacy, progress);
    if (!legacy) return result;
  }
}

}  // namespace kclxx::tool
