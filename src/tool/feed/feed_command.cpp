// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <poll.h>
#include <regex>
#include <string>
#include <string_view>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/fnv.hpp"
#include "io/daemon_process.hpp"
#include "io/descriptor.hpp"
#include "protocol/utf8.hpp"
#include "tool/command.hpp"
#include "tool/feed/fed_shard.hpp"
#include "tool/files.hpp"
#include "tool/line_splitter.hpp"
#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

using steady = std::chrono::steady_clock;

constexpr std::size_t longest_key = 256;  // characters, in Kinesis

/// The partition key of a line.
class key_of_line {
 public:
  /// Errors: command_error.
  explicit key_of_line(const std::string& key) {
    if (key.find('(') == std::string::npos) {
      separator_ = key;
      return;
    }
    try {
      pattern_.emplace(key, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error&) {
      throw command_error(command_status::usage, "--key " + key + " is no regular expression");
    }
    if (pattern_->mark_count() == 0) {
      throw command_error(command_status::usage, "--key " + key + " has no group in parentheses");
    }
  }

  [[nodiscard]] std::string operator()(std::string_view line, std::uint64_t number) const {
    if (pattern_) {
      // The matcher takes a call for each character.
      line = line.substr(0, 1000);
      std::match_results<std::string_view::const_iterator> found;
      if (!std::regex_search(line.begin(), line.end(), found, *pattern_)) return fit(line);
      return fit({found[1].first, found[1].second});
    }
    if (separator_.empty()) return std::to_string(number);
    return fit(line.substr(0, line.find(separator_)));
  }

 private:
  static std::string fit(std::string_view text) {
    std::string key(protocol::replace_invalid_utf8(text.substr(0, 4 * longest_key)));
    std::size_t characters = 0;
    const auto is_beyond = [&characters](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++characters > longest_key;
    };
    key.erase(std::find_if(key.begin(), key.end(), is_beyond), key.end());
    return key.empty() ? "-" : key;
  }

  std::optional<std::regex> pattern_;
  std::string separator_;
};

/// What the positions in --state belong to, locked against another feed.
class feed_state {
 public:
  explicit feed_state(const feed_options& options) {
    if (options.state.empty()) return;
    if (make_directory(options.state)) {
      std::filesystem::permissions(options.state, std::filesystem::perms::owner_all);
    }
    const std::string name = options.state + "/feed";
    lock_ = io::descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.is_open()) cannot_set_up(name, "opened");
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      cannot_set_up(options.state + " is in use by another kclxx feed");
    }
    const std::string mine =
        "shards " + std::to_string(options.shards) + ", key '" + options.key + "'\n";
    const std::string theirs = text_of_file(name);
    if (theirs.empty()) {
      const ssize_t size = ::write(lock_.get(), mine.data(), mine.size());
      if (size != static_cast<ssize_t>(mine.size())) cannot_set_up(name, "written");
    } else if (theirs != mine) {
      throw command_error(command_status::usage, options.state +
                                                     " has positions of another division: " +
                                                     theirs.substr(0, theirs.find('\n')));
    }
  }

  /// How many lines of a shard were covered.
  [[nodiscard]] static std::uint64_t covered(const feed_options& options, const std::string& id) {
    const std::string name = position_file(options, id);
    if (options.state.empty() || !std::filesystem::exists(name)) return 0;
    std::string text = text_of_file(name);
    text = text.substr(0, text.find('\n'));
    const auto position = sequence_position::from_string(text);
    const std::string digits(position ? position->sequence_number() : "");
    if (!position || !position->is_number() || digits.size() > 18) {
      cannot_set_up(name + " has no position, but '" + text.substr(0, 100) + "'");
    }
    return std::stoull(digits);
  }

 private:
  io::descriptor lock_;
};

class feed {
 public:
  explicit feed(const feed_options& options)
      : options_(options),
        key_(options.key),
        state_(options),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.is_open()) cannot_set_up("eventfd", "made");
    if (!options.transcripts.empty() && make_directory(options.transcripts)) {
      std::filesystem::permissions(options.transcripts, std::filesystem::perms::owner_all);
    }
    for (std::uint64_t i = 0; i < options.shards; ++i) {
      const std::string id = shard_name(i);
      shards_.emplace_back(id, options, feed_state::covered(options, id));
    }
  }

  command_status run() {
    install_signal_handlers(ignored_signals::stay_ignored, [this] { stop(); });
    std::vector<std::jthread> threads;
    std::optional<command_error> bad_line;  // what came before it is delivered
    try {
      for (fed_shard& one : shards_) {
        threads.emplace_back([this, &one] {
          one.run();
          if (one.has_given_up()) stop();
        });
      }
      read_input();
    } catch (const command_error& error) {
      bad_line = error;
    } catch (...) {
      stop();
      threads.clear();
      throw_if_cancelled();
      throw;
    }
    for (fed_shard& one : shards_) one.end_input();
    threads.clear();
    throw_if_cancelled();
    const command_status status = report();
    if (bad_line) throw *bad_line;
    return status;
  }

 private:
  using lines_by_shard = std::vector<std::vector<fed_line>>;

  /// The children are asked to shut down.
  void stop() {
    const std::uint64_t one = 1;
    is_stopped_ = ::write(wake_.get(), &one, sizeof one) > 0 || is_stopped_;
    for (fed_shard& shard : shards_) shard.stop();
  }

  /// False: it was stopped, or the time came first.
  [[nodiscard]] bool wait_for_input(std::optional<steady::time_point> until) const {
    for (;;) {
      pollfd both[] = {{wake_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
      int time = -1;
      if (until) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - steady::now());
        time = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
      }
      const int ready = ::poll(both, until ? 1 : 2, time);
      if (ready == -1 && errno == EINTR) continue;
      if (both[0].revents != 0) return false;
      if (!until) return true;
      if (steady::now() >= *until) return false;
    }
  }

  void read_input() {
    constexpr std::size_t piece = std::size_t{256} << 10;
    line_splitter splitter;
    lines_by_shard lines(shards_.size());
    while (!is_stopped_ && wait_for_input({})) {
      const ssize_t size = ::read(STDIN_FILENO, splitter.prepare(piece), piece);
      if (size == -1 && (errno == EINTR || errno == EAGAIN)) continue;
      if (size == -1) cannot_set_up("stdin", "read");
      splitter.commit(static_cast<std::size_t>(size));
      for (std::string_view line; !is_stopped_ && splitter.next(line);) take(line, lines);
      if (size == 0 && !splitter.rest().empty()) take(splitter.take_rest(), lines);
      if (splitter.rest().size() > max_payload) refuse();
      hand_over(lines);
      if (size == 0) return;
    }
  }

  void take(std::string_view line, lines_by_shard& lines) {
    if (line.size() > max_payload) {
      hand_over(lines);
      refuse();
    }
    await_turn(lines);
    std::string key = key_(line, ++number_);
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    std::size_t shard = 0;
    if (shards_.size() > 1) {
      detail::fnv_hash hash;
      hash.add(std::string_view(key));
      shard = hash.value() % shards_.size();
    }
    lines[shard].push_back({std::string(line), std::move(key), now});
  }

  [[noreturn]] void refuse() const {
    throw command_error(command_status::bad_transcript,
                        "stdin:" + std::to_string(number_ + 1) +
                            ": the line has more than 10 MiB, the most that a record can have");
  }

  /// With --rate.
  void await_turn(lines_by_shard& lines) {
    if (options_.rate == 0) return;
    if (number_ == 0) began_ = steady::now();
    const auto due =
        began_ + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(
                     static_cast<double>(number_) / static_cast<double>(options_.rate)));
    if (due - steady::now() < std::chrono::milliseconds(5)) return;
    hand_over(lines);
    static_cast<void>(wait_for_input(due));
  }

  void hand_over(lines_by_shard& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].empty()) shards_[i].put(std::exchange(lines[i], {}));
    }
  }

  [[nodiscard]] command_status report() const {
    command_status status = command_status::ok;
    for (const fed_shard& one : shards_) {
      if (one.error()) std::rethrow_exception(one.error());
      std::cout << one.id() << "  " << one.put_count() << " put, " << one.delivered()
                << " delivered, " << one.covered() << " covered";
      if (one.covered_before() > 0) std::cout << "; " << one.covered_before() << " were before";
      if (one.passed_over() < one.covered_before() && !is_stopped_) {
        std::cout << ", but the input has only " << one.passed_over() << " of these";
        status = std::max(status, command_status::finding);
      }
      std::cout << "\n";
      if (one.covered() < one.delivered()) status = std::max(status, command_status::finding);
      if (one.deaths() > 0) status = std::max(status, command_status::child_failed);
    }
    std::cout << std::flush;
    return status;
  }

  const feed_options& options_;
  key_of_line key_;
  feed_state state_;
  io::descriptor wake_;
  std::deque<fed_shard> shards_;
  std::atomic<bool> is_stopped_ = false;
  std::uint64_t number_ = 0;  // of the line that was read last
  steady::time_point began_{};
};

void add_options(CLI::App& command, feed_options& options) {
  const auto number = [&command](const char* name, std::uint64_t& value, std::uint64_t least,
                                 std::uint64_t most, const char* text) {
    add_option(command, "N", name, value, text)
        ->capture_default_str()
        ->check(whole_number_between(least, most));
  };
  number("--shards", options.shards, 1, 1000, "Shards, each with a child of its own");
  add_option(command, "TEXT", "--key", options.key,
             "The partition key, which decides on the shard: what is before TEXT in the line, or,\n"
             "with a group in parentheses, what the group of this regular expression matches.\n"
             "Default: the line's number");
  number("--rate", options.rate, 0, 1'000'000'000, "Lines in a second; 0 is no limit");
  number("--batch", options.batch, 1, 10'000, "The most records in a processRecords");
  add_option(command, "DIR", "--state", options.state,
             "Keep the positions here: with the same input a later run goes on after them");
  add_option(command, "DIR", "--transcript", options.transcripts,
             "Write a transcript of each child here, for kclxx replay");
  command.add_flag("--restart", options.restarts,
                   "Start another child in the place of one that dies, with what it did not cover");
}

}  // namespace

void add_feed_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"feed",
       "Makes each line of stdin a record, and plays the daemon to a child for each shard.\n"
       "At the end of the input, and at the first Ctrl-C, the children are asked to shut down.\n"
       "Exit status: 1 a child did not checkpoint all, 3 a child failed, 4 a line is too long.",
       "kclxx feed -- ./my_processor < views.jsonl\n"
       "  kclxx feed --shards 4 --key , --state positions -- ./my_processor < views.jsonl"},
      child_use::required, run);
  auto options = std::make_shared<feed_options>();
  add_options(command, *options);
  command.callback([options, &run] {
    ::setenv(io::daemon_variable, io::no_daemon, 1);
    options->command = run.child;
    run.status = static_cast<int>(feed(*options).run());
  });
}

}  // namespace kclxx::tool
