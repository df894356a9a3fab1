// SPDX-License-Identifier: Apache-2.0
// Any events may come in any order, from a daemon that keeps to nothing: the
// session neither crashes nor contradicts itself, and the end of the input ends it. The simulation
// (tests/simulation) is for daemons that keep to the protocol.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "fuzz/expect.hpp"
#include "session/session.hpp"

namespace {

using namespace kclxx;
using session::outputs;

/// Reads the fuzzer's bytes as choices.
class choices {
 public:
  choices(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}
  [[nodiscard]] bool has_more() const { return !rest_.empty(); }
  unsigned next() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

 private:
  std::string_view rest_;
};

run_options options_from(unsigned bits) {
  run_options result;
  if ((bits & 1U) != 0) result.mode = checkpoint_mode::manual;
  if ((bits & 2U) != 0) result.checkpoint_interval = std::chrono::milliseconds(0);
  if ((bits & 4U) != 0) result.retry.max_attempts = 1;
  if ((bits & 8U) != 0) result.shutdown_retry_limit = std::chrono::milliseconds(0);
  return result;
}

class player {
 public:
  player(choices choices, unsigned bits) : from_(choices), session_(options_from(bits)) {}

  void run() {
    while (from_.has_more() && !left_) step();
    // Whatever came before: the end of the input, and of the callback, end it.
    if (!left_) feed([&](auto& out) { session_.on_end_of_input(false, out); });
    if (!left_ && calling_) returned();
    for (int i = 0; i < 50 && !left_; ++i) {
      now_ += std::chrono::minutes(1);
      for (const auto which : {session::timer::retry, session::timer::grace}) {
        if (!left_) feed([&](auto& out) { session_.on_timer(which, now_, out); });
      }
      if (!left_ && calling_) returned();
    }
    expect(left_, "the end of the input ends it");
    expect(waiting_.empty() && handlers_.empty(), "no waiting call and no handler is forgotten");
  }

 private:
  template <class Event>
  void feed(Event one) {
    outputs out;
    one(out);
    for (const session::output& what : out) {
      expect(!left_, "nothing comes after leave");
      check(what);
    }
  }

  void check(const session::output& what) {
    if (std::holds_alternative<session::call>(what)) {
      expect(!std::exchange(calling_, true), "callbacks come one at a time");
    } else if (const auto* done = std::get_if<session::notify_waiter>(&what)) {
      expect(waiting_.erase(done->waiter) + handlers_.erase(done->waiter) == 1,
             "a waiting call and a handler complete once");
    } else if (const auto* wrote = std::get_if<session::write_checkpoint>(&what)) {
      written_ = wrote->position;
    } else if (std::holds_alternative<session::write_status>(what)) {
      ++statuses_;
      expect(statuses_ <= messages_, "no status without an action");
    } else if (std::holds_alternative<session::request_stop>(what)) {
      expect(!std::exchange(stopped_, true), "the stop token fires once");
    } else if (std::holds_alternative<session::leave>(what)) {
      left_ = true;
    }
  }

  template <class Body>
  void receive(const char* name, Body body) {
    if constexpr (!std::is_same_v<Body, protocol::checkpoint_answer>) ++messages_;
    feed([&](auto& out) { session_.on_message({name, std::move(body)}, {}, now_, out); });
  }

  std::optional<sequence_position> some_position() {
    const unsigned value = from_.next();
    if (value == 0) return std::nullopt;
    if (value == 1) return sequence_position("TRIM_HORIZON");
    if (value == 2) return sequence_position("SHARD_END");
    if (value == 3) return sequence_position("5", ~std::uint64_t{0});
    return sequence_position(std::to_string(value / 4), value % 4);
  }

  void returned() {
    calling_ = false;
    feed([&](auto& out) { session_.on_callback_returned(now_, out); });
  }

  void answer() {
    const unsigned kind = from_.next() % 6;
    protocol::checkpoint_answer what;
    if (written_ && written_->is_number()) what.position = written_;
    if (kind == 0) what.error = "ThrottlingException";
    if (kind == 1) what.error = "ShutdownException";
    if (kind == 2) what.error = "InvalidStateException";
    if (kind == 3) what.position = number();  // mostly to another checkpoint
    receive("checkpoint", std::move(what));
  }

  void step() {
    switch (from_.next() % 22) {
      case 0:
      case 1:
        return receive("initialize", protocol::initialize{"s", some_position()});
      case 2:
      case 3:
        return receive("processRecords", protocol::process_records{{}, number()});
      case 4:
        return receive("leaseLost", protocol::lease_lost{});
      case 5:
        return receive("shardEnded", protocol::shard_ended{});
      case 6:
        return receive("shutdownRequested", protocol::shutdown_requested{});
      case 7:
        return receive("tuneUp", protocol::unknown_action{});
      case 8:
      case 9:
        return answer();
      case 10:
      case 11:
        if (calling_) returned();
        return;
      case 12:
        if (!std::exchange(calling_, false)) return;
        return feed([&](auto& out) { session_.on_threw({"oops", false, true}, now_, out); });
      case 13: {
        const bool from_callback = calling_ && from_.next() % 2 == 0;
        const auto position = some_position();
        waiting_.insert(++last_waiter_);
        return feed([&](auto& out) {
          session_.on_checkpoint(last_waiter_, position, from_callback, now_, out);
        });
      }
      case 14: {
        if (waiting_.empty()) return;
        const auto id = *waiting_.begin();
        waiting_.erase(waiting_.begin());
        return feed([&](auto& out) {
          expect(session_.on_deadline(id, now_, out), "a call that waits can give up");
        });
      }
      case 15: {
        const auto position = some_position();
        const bool from_callback = calling_ && from_.next() % 2 == 0;
        std::optional<session::waiter_id> id;
        if (from_.next() % 2 == 0) handlers_.insert(*(id = ++last_waiter_));
        return feed([&](auto& out) {
          session_.on_async_checkpoint(id, position, from_callback, now_, out);
        });
      }
      case 16:
        now_ += std::chrono::milliseconds(1U << (from_.next() % 20));
        return feed([&](auto& out) {
          session_.on_timer(static_cast<session::timer>(from_.next() % session::timer_count), now_,
                            out);
        });
      case 17:
        if (!std::exchange(calling_, false)) return;
        return feed([&](auto& out) { session_.on_threw({"gone", true, true}, now_, out); });
      case 18:  // a timer or a handler
        return feed([&](auto& out) {
          session_.on_threw({"oops", from_.next() % 2 == 0, false}, now_, out);
        });
      case 19:
        if (!calling_) return;
        return feed([&](auto& out) { session_.on_callback_lasts(now_, out); });
      case 20:
        return feed([&](auto& out) { session_.on_end_of_input(from_.next() % 2 == 0, out); });
      default:
        return feed([&](auto& out) {
          switch (from_.next() % 3) {
            case 0:
              return session_.on_bad_line("bad", out);
            case 1:
              return session_.on_failure(exit_status::resource_failure, "no memory", out);
            default:
              return session_.on_output_broken("broken", out);
          }
        });
    }
  }

  std::optional<sequence_position> number() {
    const auto position = some_position();
    return position && position->is_number() ? position : std::nullopt;
  }

  choices from_;
  session::session session_;
  session::time_point now_{std::chrono::hours(1)};
  std::set<session::waiter_id> waiting_;
  std::set<session::waiter_id> handlers_;
  std::optional<sequence_position> written_;
  session::waiter_id last_waiter_ = 0;
  int messages_ = 0;
  int statuses_ = 0;
  bool calling_ = false;
  bool stopped_ = false;
  bool left_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  player(choices(data + 1, size - 1), data[0]).run();
  return 0;
}
