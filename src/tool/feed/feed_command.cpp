// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
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

#include <kclxx/record.hpp>

#include "base/fnv.hpp"
#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "io/process_identity.hpp"
#include "protocol/json_string.hpp"
#include "tool/command.hpp"
#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/line_splitter.hpp"
#include "tool/lockstep/lockstep_daemon.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/child_dialogue.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

struct feed_options {
  std::uint64_t shards = 1;
  /// A separator, or a regular expression with a group; empty: the key is the line's number.
  std::string key;
  std::uint64_t rate = 0;      ///< lines in a second; 0: as fast as the children allow
  std::uint64_t batch = 1000;  ///< the most records in a batch
  std::string state;           ///< a folder for the positions; empty: they are not kept
  bool restarts = false;
  /// How long the children may take to shut down.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
  std::vector<std::string> command{};
};

/// A line of the input, as a record.
struct fed_line {
  std::string data;
  std::string key;
  std::chrono::milliseconds arrived{};  ///< since 1970
  std::uint64_t checksum = 0;           ///< that of the shard's lines up to here
};

using namespace std::chrono_literals;

/// How many bytes of lines may wait for a child: the reader of the input is no further ahead.
constexpr std::size_t max_waiting_bytes = std::size_t{16} << 20;
/// How many bytes of delivered lines are kept for the next child, until a checkpoint covers them.
constexpr std::size_t max_uncovered_bytes = std::size_t{256} << 20;
/// A batch ends with the record that exceeds this size of data.
constexpr std::size_t max_batch_bytes = std::size_t{8} << 20;
/// The daemon waits for a child without a limit, and so does feed.
constexpr time_limits unlimited{std::chrono::hours(24 * 365), std::chrono::hours(24 * 365)};
/// After so many deaths of children at the same position no other child is started.
constexpr int max_deaths_in_row = 3;

std::size_t size_of(const fed_line& line) { return line.data.size() + line.key.size() + 100; }

sequence_position position_at(std::uint64_t number) {
  return number == 0 ? sequence_position("TRIM_HORIZON")
                     : sequence_position(std::to_string(number));
}

/// How many lines a position covers. The shard's sequence numbers are numbers of lines.
std::uint64_t number_at(const sequence_position& position) {
  return position.is_number() ? std::stoull(std::string(position.sequence_number())) : 0;
}

std::chrono::milliseconds since_1970() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

/// A program may keep positions by the names of its shards for years, so two runs must not get the
/// same name by chance: it has 48 random bits.
constexpr std::size_t run_digits = 12;
constexpr std::string_view state_head = "kclxx feed 2\nrun ";
constexpr const char* hexadecimal = "0123456789abcdef";

/// The first lines of a shard: how many there are, and a checksum that recognizes them.
struct covered_lines {
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;

  void add(std::string_view line) {
    ++count;
    detail::fnv_hash hash(checksum);
    hash.add(line);
    hash.add("\n");  // so that lines are not taken for others with the same characters
    checksum = hash.value();
  }
  bool operator==(const covered_lines&) const = default;
};

/// The names of the shards of `kclxx feed`, and with --state the lines of each that earlier runs
/// have covered. The folder is locked against another feed.
///
/// Thread safety: store() may be called from different threads for different shards, the other
/// functions from one thread.
class feed_state {
 public:
  /// `folder`: empty without --state; then nothing is kept, and the names are new.
  /// `division`: the options that decide on the shard of a line, as one line of text.
  /// Errors: command_error when the folder is in use, of another division or another version.
  feed_state(std::string folder, const std::string& division)
      : folder_(std::move(folder)), run_(random_digits(run_digits)) {
    if (!is_kept()) return;
    make_private_directory(folder_);
    const std::string name = folder_ + "/feed";
    lock_ = io::descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.is_open()) cannot_set_up(name, "opened");
    require_own(name);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) cannot_set_up(name, "locked, so name a folder elsewhere");
      cannot_set_up(folder_ + " is in use by another kclxx feed");
    }
    const std::string text = text_of_file(name);
    if (text.empty()) {
      const std::string content = std::string(state_head) + run_ + "\n" + division + "\n";
      const ssize_t size = ::write(lock_.get(), content.data(), content.size());
      if (size != static_cast<ssize_t>(content.size())) cannot_set_up(name, "written");
      return;
    }
    const std::string run =
        text.starts_with(state_head) ? text.substr(state_head.size(), run_digits) : "";
    const std::size_t line = state_head.size() + run_digits;
    if (run.size() != run_digits || run.find_first_not_of(hexadecimal) != std::string::npos ||
        text.size() < line + 2 || text[line] != '\n' || text.back() != '\n') {
      cannot_set_up(name + " is not of this version of kclxx feed: name another folder");
    }
    const std::string kept_division = text.substr(line + 1, text.size() - line - 2);
    if (kept_division != division) {
      throw command_error(command_status::usage,
                          folder_ + " has positions of another division: " + kept_division);
    }
    run_ = run;
  }

  [[nodiscard]] bool is_kept() const noexcept { return !folder_.empty(); }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// "shardId-000000000003-5f0c9e2103ab". No other state has this name, and no run without a state.
  [[nodiscard]] std::string name_of_shard(std::uint64_t number) const {
    return shard_name(number) + "-" + run_;
  }
  /// The lines that earlier runs have covered. Errors: command_error.
  [[nodiscard]] covered_lines covered(const std::string& shard) const {
    const std::string name = position_file(shard);
    if (!is_kept() || !std::filesystem::exists(name)) return {};
    require_own(name);
    const std::string text = text_of_file(name);
    const std::string_view line = std::string_view(text).substr(0, text.find('\n'));
    const std::size_t blank = line.find(' ');
    std::uint64_t count = 0;
    std::uint64_t checksum = 0;
    if (blank == std::string_view::npos || line.size() == text.size() ||
        !read_number(line.substr(0, blank), count) ||
        !read_number(line.substr(blank + 1), checksum, 16)) {
      cannot_set_up(name + " has no position, but '" + text.substr(0, 100) + "'");
    }
    return {count, checksum};
  }
  /// Blocking: until the file system has taken it. Errors: std::exception.
  void store(const std::string& shard, const covered_lines& covered) const {
    if (!is_kept()) return;
    const std::string name = position_file(shard);
    char text[64];
    const int size = std::snprintf(text, sizeof text, "%llu %016llx\n",
                                   static_cast<unsigned long long>(covered.count),
                                   static_cast<unsigned long long>(covered.checksum));
    replace_file(name, {text, static_cast<std::size_t>(size)});
  }

 private:
  [[nodiscard]] std::string position_file(const std::string& shard) const {
    return folder_ + "/" + shard + ".position";
  }

  std::string folder_;
  io::descriptor lock_;
  std::string run_;  ///< random digits that end the names of the shards
};

/// One shard of `kclxx feed`: the lines that wait for it, and the daemon that is played to its
/// child. The n-th line of a shard has the sequence number n.
///
/// Thread safety: run() has a thread of its own. Figures may be read when it has returned. stop()
/// may be called from any thread, all else from the thread that reads the input.
class fed_shard {
 public:
  /// Lifetime: the options and the state outlive it.
  fed_shard(std::string id, const feed_options& options, const feed_state& state)
      : id_(std::move(id)),
        options_(options),
        state_(state),
        begin_(state.covered(id_)),
        delivered_(begin_.count),
        covered_(begin_) {}

  /// Whether the input has had all lines that an earlier run has covered.
  [[nodiscard]] bool is_recognized() const noexcept { return read_.count >= begin_.count; }
  /// Counts the shard's next line. True: an earlier run has covered it, so it must not be put.
  /// Errors: command_error when the earlier run has covered different lines.
  [[nodiscard]] bool pass_over(std::string_view line) {
    if (!state_.is_kept()) return false;
    read_.add(line);
    if (read_.count > begin_.count) return false;
    if (is_recognized() && read_ != begin_) {
      refuse_input("the " + std::to_string(begin_.count) + " lines that were covered of " + id_ +
                   " are other ones");
    }
    return true;
  }
  /// Precondition: the input ended. Errors: command_error when it ended too early.
  void require_recognized() const {
    if (is_recognized()) return;
    refuse_input("it has only " + std::to_string(read_.count) + " of the " +
                 std::to_string(begin_.count) + " lines that were covered of " + id_);
  }
  /// The checksum of the lines that were counted.
  [[nodiscard]] std::uint64_t checksum() const noexcept { return read_.checksum; }

  /// After stop() the lines are only counted.
  /// Blocking: while the child is too far behind. Errors: std::bad_alloc.
  void put(std::vector<fed_line> lines) {
    std::unique_lock lock(mutex_);
    for (fed_line& line : lines) {
      changed_.wait(lock, [this] { return waiting_bytes_ < max_waiting_bytes || is_stopped_; });
      ++put_;
      if (is_stopped_) continue;
      waiting_bytes_ += size_of(line);
      waiting_.push_back(std::move(line));
      if (waiting_bytes_ >= max_waiting_bytes) changed_.notify_all();
    }
    changed_.notify_all();
  }

  /// Tells that no line follows. The lines that wait are still delivered.
  void end_input() {
    const std::lock_guard lock(mutex_);
    input_ended_ = true;
    changed_.notify_all();
  }

  /// The lines that wait are not delivered. The child is asked to shut down after its action.
  void stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }

  /// Plays to one child after another, until the input has ended, stop() was called, or a child has
  /// died and no other is to be started.
  void run() {
    try {
      for (bool is_over = false; !is_over;) {
        const int earlier_deaths = deaths_;
        play_to_child();
        const bool has_died = deaths_ > earlier_deaths;
        const std::lock_guard lock(mutex_);  // for is_stopped_
        is_over =
            !has_died || !options_.restarts || deaths_in_row_ == max_deaths_in_row || is_stopped_;
        has_given_up_ = has_died && is_over;
      }
    } catch (const cancelled&) {
      was_cancelled_ = true;
    } catch (...) {
      error_ = std::current_exception();
      has_given_up_ = true;
    }
    stop();  // the thread that puts lines must not wait for this one
  }

  /// Prints the line of the shard's figures, with which the command ends.
  void print_figures() const {
    std::cout << id_ << "  " << put_ << " put, " << delivered_ - begin_.count << " delivered, "
              << covered() << " covered";
    if (begin_.count > 0) std::cout << "; " << begin_.count << " were before";
    if (deaths_ == 1) std::cout << "; 1 child died";
    if (deaths_ > 1) std::cout << "; " << deaths_ << " children died";
    std::cout << "\n";
  }
  /// How many of the lines that were put are not covered.
  [[nodiscard]] std::uint64_t left() const noexcept { return put_ - std::min(put_, covered()); }
  /// A child has died, or there was an error, and lines that wait are not delivered.
  [[nodiscard]] bool has_given_up() const noexcept { return has_given_up_; }
  /// The command was cancelled before the child had shut down.
  [[nodiscard]] bool was_cancelled() const noexcept { return was_cancelled_; }
  /// The error that has ended run(), if it was neither a child's death nor a cancellation.
  [[nodiscard]] const std::exception_ptr& error() const noexcept { return error_; }

 private:
  [[nodiscard]] std::uint64_t covered() const noexcept { return covered_.count - begin_.count; }
  /// What take_batch() has found.
  enum class next { batch, nothing, end };

  [[noreturn]] void refuse_input(const std::string& reason) const {
    throw command_error(command_status::finding, "stdin is another input than that of the state " +
                                                     state_.folder() + ": " + reason);
  }

  void play_to_child() {
    auto child =
        std::make_unique<child_dialogue>(options_.command, child_dialogue::error_output::passed_on);
    lockstep_daemon daemon(std::move(child), id_, unlimited, position_at(covered_.count));
    daemon.row.set_fault([this](const sequence_position& position) { return store(position); });
    serve(daemon);
    if (!daemon.noise.empty()) {
      say("the daemon skips this line of the child: " + in_quotes(daemon.noise.front().line) +
          " (" + daemon.noise.front().why + ")" + (daemon.noise.size() > 1 ? ", and others" : ""));
    }
    if (!daemon.refused.empty()) say(daemon.refused);
  }

  void serve(lockstep_daemon& daemon) {
    reaction last = daemon.attempt(daemon.initialize());
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
          for (fed_line& line : batch_) {
            uncovered_bytes_ += size_of(line);
            uncovered_.push_back(std::move(line));
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

  next take_batch() {
    std::unique_lock lock(mutex_);
    const bool is_full = uncovered_bytes_ >= max_uncovered_bytes;
    const auto has_something = [&] {
      return is_stopped_ || (!is_full && (input_ended_ || !waiting_.empty()));
    };
    // The wait has a limit, so that a child that dies meanwhile is noticed.
    if (!changed_.wait_for(lock, is_full ? 1s : 200ms, has_something)) {
      throw_if_cancelled();
      if (!is_full) return next::nothing;
      if (!std::exchange(has_told_limit_, true)) {
        say("waits for a checkpoint: 256 MiB of lines are kept that none covers");
      }
      return next::batch;  // it is empty, and gives the child an occasion for a checkpoint
    }
    if (is_stopped_) return next::end;
    std::size_t bytes = 0;
    while (!waiting_.empty() && batch_.size() < options_.batch && bytes < max_batch_bytes) {
      bytes += waiting_.front().data.size();
      waiting_bytes_ -= size_of(waiting_.front());
      batch_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    changed_.notify_all();
    return batch_.empty() ? next::end : next::batch;
  }

  action action_of_batch() {
    std::vector<std::string> numbers;
    numbers.reserve(batch_.size());
    std::vector<record> records;
    records.reserve(batch_.size());
    for (const fed_line& line : batch_) {
      numbers.push_back(std::to_string(delivered_ + numbers.size() + 1));
      records.emplace_back(record::fields{line.data, line.key, numbers.back(), 0, line.arrived});
      if (state_.is_kept()) uncovered_checksums_.push_back(line.checksum);
    }
    const auto behind =
        batch_.empty() ? 0
                       : std::max<std::int64_t>(0, (since_1970() - batch_.back().arrived).count());
    return records_action(records, behind);
  }

  /// The lines that a position covers: at least those that were covered before. A position before
  /// the first record, such as TRIM_HORIZON, covers no line.
  [[nodiscard]] covered_lines lines_up_to(const sequence_position& position) const {
    const std::uint64_t count = number_at(position);
    if (count <= covered_.count) return covered_;
    return {count, state_.is_kept() ? uncovered_checksums_[count - covered_.count - 1] : 0};
  }

  /// Writes a checkpoint before it is answered, as the daemon does.
  std::optional<std::string> store(const sequence_position& position) {
    try {
      state_.store(id_, lines_up_to(position));
      return std::nullopt;
    } catch (const std::system_error& error) {
      if (!std::exchange(has_told_store_, true)) say(error.what());
      return "KinesisClientLibDependencyException";  // as if the lease table did not answer
    }
  }

  void on_progress(lockstep_daemon& daemon) {
    daemon.checkpoints.clear();
    const covered_lines reached = lines_up_to(daemon.row.checkpoint());
    if (reached == covered_) return;
    for (std::uint64_t i = covered_.count; i < reached.count; ++i) {
      if (state_.is_kept()) uncovered_checksums_.pop_front();
      if (uncovered_.empty()) continue;
      uncovered_bytes_ -= size_of(uncovered_.front());
      uncovered_.pop_front();
    }
    covered_ = reached;
    delivered_ = std::max(delivered_, covered_.count);
    deaths_in_row_ = 0;
  }

  void on_death(const std::string& what) {
    ++deaths_;
    ++deaths_in_row_;
    say("a child failed: " + what);
    if (!options_.restarts) return;
    if (deaths_in_row_ == max_deaths_in_row) {
      say("3 children have failed at the same place: no other one is started");
      return;
    }
    const std::lock_guard lock(mutex_);
    for (; !uncovered_.empty(); uncovered_.pop_back()) {
      waiting_bytes_ += size_of(uncovered_.back());
      waiting_.push_front(std::move(uncovered_.back()));
    }
    uncovered_bytes_ = 0;
    uncovered_checksums_.clear();
    delivered_ = covered_.count;
  }

  void say(const std::string& what) const {
    const std::string line = "kclxx feed: " + id_ + ": " + printable(what) + "\n";
    // In one write, since the threads of other shards write, too.
    const std::error_code ignored = io::write_all(STDERR_FILENO, line);
    static_cast<void>(ignored);
  }

  const std::string id_;
  const feed_options& options_;
  const feed_state& state_;
  const covered_lines begin_;

  /// The lines that the input has had. Only the thread that reads the input uses it.
  covered_lines read_;

  /// Guards the members up to is_stopped_. changed_ wakes the reader when there is room for lines,
  /// and the thread of run() when there are lines, or none will follow.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<fed_line> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t put_ = 0;
  bool input_ended_ = false;
  bool is_stopped_ = false;

  // Only the thread of run() uses the members below, until it has ended.
  std::vector<fed_line> batch_;
  std::deque<fed_line> uncovered_;  ///< with --restart: delivered lines that no checkpoint covers
  std::size_t uncovered_bytes_ = 0;
  /// With a state: the checksum after each delivered line that no checkpoint covers.
  std::deque<std::uint64_t> uncovered_checksums_;
  std::uint64_t delivered_;  ///< the number of the last line that was delivered
  covered_lines covered_;
  int deaths_ = 0;
  int deaths_in_row_ = 0;  ///< since the last checkpoint that covered a line
  bool has_given_up_ = false;
  bool was_cancelled_ = false;
  bool has_told_store_ = false;
  bool has_told_limit_ = false;
  std::exception_ptr error_;
};

using steady = std::chrono::steady_clock;

constexpr std::size_t max_key_characters = 256;  // Kinesis' limit

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
      // The matcher makes a call for each character, so a longer line could exhaust the stack.
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
    std::string key(protocol::replace_invalid_utf8(text.substr(0, 4 * max_key_characters)));
    std::size_t characters = 0;
    const auto is_beyond = [&characters](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++characters > max_key_characters;
    };
    key.erase(std::find_if(key.begin(), key.end(), is_beyond), key.end());
    return key.empty() ? "-" : key;
  }

  std::optional<std::regex> pattern_;
  std::string separator_;
};

/// The options that decide on the shard of a line.
std::string division_of(const feed_options& options) {
  return "shards " + std::to_string(options.shards) + ", key '" + options.key + "'";
}

class feed {
 public:
  explicit feed(const feed_options& options)
      : options_(options),
        key_(options.key),
        state_(options.state, division_of(options)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake_.is_open()) cannot_set_up("eventfd", "made");
    for (std::uint64_t i = 0; i < options.shards; ++i) {
      shards_.emplace_back(state_.name_of_shard(i), options, state_);
    }
  }

  command_status run() {
    install_signal_handlers(ignored_signals::stay_ignored);
    const first_signal_call on_signal([this] { stop(); });
    std::optional<command_error> bad_line;  // it is thrown once the lines before it are delivered
    try {
      begin_once_recognized();
      read_input();
    } catch (const command_error& error) {
      if (threads_.empty()) throw;
      bad_line = error;
    } catch (...) {
      stop();
      const bool have_shut_down = await_shards();
      threads_.clear();
      if (have_shut_down) throw_if_cancelled();
      throw;
    }
    for (fed_shard& shard : shards_) shard.end_input();
    const bool have_shut_down = await_shards();
    threads_.clear();
    if (have_shut_down) throw_if_cancelled();
    const command_status status = report();
    if (bad_line) throw *bad_line;
    return status;
  }

 private:
  using lines_by_shard = std::vector<std::vector<fed_line>>;

  /// Starts the children once each shard has had the lines that an earlier run has covered. Before,
  /// the input may be that of another state, of which nothing must be delivered.
  void begin_once_recognized() {
    const auto is_recognized = [](const fed_shard& shard) { return shard.is_recognized(); };
    if (!threads_.empty() || is_stopped_) return;
    if (!std::all_of(shards_.begin(), shards_.end(), is_recognized)) return;
    for (fed_shard& shard : shards_) {
      // The thread takes the lock at its end, so it is counted before it is subtracted.
      const std::lock_guard lock(mutex_);
      threads_.emplace_back([this, &shard] {
        shard.run();
        if (shard.has_given_up()) stop();
        const std::lock_guard lock(mutex_);
        --running_shards_;
        changed_.notify_all();
      });
      ++running_shards_;
    }
  }

  /// Waits until all children have left. False: the grace time for their shutdown is over, and the
  /// end of their input follows.
  bool await_shards() {
    std::unique_lock lock(mutex_);
    const auto are_over = [this] { return running_shards_ == 0; };
    changed_.wait(lock, [&] { return are_over() || is_stopped_; });
    if (changed_.wait_for(lock, options_.grace, are_over)) return true;
    std::cerr << "kclxx feed: children have not shut down within " + to_text(options_.grace) +
                     " (--grace): what they have not covered is left\n"
              << std::flush;
    cancel(SIGTERM);
    return false;
  }

  /// The children are asked to shut down.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
      changed_.notify_all();
    }
    const std::uint64_t wakes = 1;
    // An eventfd always has room for this.
    static_cast<void>(::write(wake_.get(), &wakes, sizeof wakes) == sizeof wakes);
    for (fed_shard& shard : shards_) shard.stop();
  }

  /// Waits for input, or with `until` for this time. False: stop() was called, or the time has
  /// come.
  [[nodiscard]] bool wait_for_input(std::optional<steady::time_point> until) const {
    for (;;) {
      pollfd both[] = {{wake_.get(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
      int time = -1;
      if (until) {
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*until - steady::now());
        time = static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 60'000));
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
      for (std::string_view line; splitter.next(line);) take(line, lines);
      if (size == 0 && !splitter.rest().empty()) take(splitter.take_rest(), lines);
      if (splitter.rest().size() > max_record) refuse();
      hand_over(lines);
      if (size > 0) continue;
      for (const fed_shard& shard : shards_) shard.require_recognized();
      return;
    }
    stop();  // so that no shard delivers what is put now to be counted
    if (!splitter.rest().empty()) lines[0].emplace_back();  // a line of which a part was read
    for (std::size_t i = 0; i < lines.size(); ++i) shards_[i].put(std::move(lines[i]));
  }

  void take(std::string_view line, lines_by_shard& lines) {
    std::string key = key_(line, lines_read_ + 1);
    if (line.size() + key.size() > max_record) {
      hand_over(lines);
      refuse();
    }
    ++lines_read_;
    std::size_t index = 0;
    if (shards_.size() > 1) {
      detail::fnv_hash hash;
      hash.add(std::string_view(key));
      index = hash.value() % shards_.size();
    }
    fed_shard& shard = shards_[index];
    if (shard.pass_over(line)) {
      if (shard.is_recognized()) begin_once_recognized();
      return;
    }
    await_turn(lines);
    lines[index].push_back({std::string(line), std::move(key), since_1970(), shard.checksum()});
  }

  [[noreturn]] void refuse() const {
    throw command_error(command_status::bad_transcript,
                        "stdin:" + std::to_string(lines_read_ + 1) +
                            ": the line is too long: with its partition key a record has at most " +
                            std::to_string(max_record) + " bytes");
  }

  /// With --rate, waits until the next line is due. Lines before the children are started do not
  /// wait.
  void await_turn(lines_by_shard& lines) {
    if (options_.rate == 0 || threads_.empty()) return;
    if (paced_lines_ == 0) first_paced_line_ = steady::now();
    const auto due = first_paced_line_ +
                     std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(
                         static_cast<double>(paced_lines_) / static_cast<double>(options_.rate)));
    ++paced_lines_;
    if (due - steady::now() < std::chrono::milliseconds(5)) return;
    hand_over(lines);
    static_cast<void>(wait_for_input(due));
  }

  /// Puts the lines into their shards. Before the children are started it leaves them where they
  /// are.
  void hand_over(lines_by_shard& lines) {
    if (threads_.empty()) return;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].empty()) shards_[i].put(std::exchange(lines[i], {}));
    }
  }

  [[nodiscard]] command_status report() const {
    command_status status = command_status::ok;
    std::uint64_t left = 0;
    bool is_told = false;
    for (const fed_shard& shard : shards_) {
      if (shard.error()) std::rethrow_exception(shard.error());
      shard.print_figures();
      is_told = is_told || shard.was_cancelled();
      left += shard.left();
      if (left > 0 || shard.was_cancelled()) {
        status = std::max(status, command_status::finding);
      }
      if (shard.has_given_up()) status = std::max(status, command_status::child_failed);
    }
    std::cout << std::flush;
    if (is_stopped_ && !is_told && left > 0 && status == command_status::finding) {
      std::cerr << "kclxx feed: lines that were read and are not covered: " << left << std::endl;
    }
    return status;
  }

  const feed_options& options_;
  key_of_line key_;
  feed_state state_;
  io::descriptor wake_;
  std::deque<fed_shard> shards_;
  /// Guards is_stopped_, which may be read without it, and running_shards_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_stopped_ = false;
  std::size_t running_shards_ = 0;

  // Only the thread that reads the input uses the members below.
  std::uint64_t lines_read_ = 0;
  std::uint64_t paced_lines_ = 0;  ///< lines that have waited for --rate
  steady::time_point first_paced_line_{};
  std::vector<std::jthread> threads_;  ///< of the shards; empty until the input is recognized
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
  command
      .add_option_function<std::string>(
          "--transcript",
          [&options](const std::string& folder) {
            std::error_code error;
            const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
            if (error) {
              cannot_set_up(
                  "--transcript starts this program, found by /proc, which is not mounted here: "
                  "mount -t proc proc /proc");
            }
            // kclxx capture between the daemon and each child.
            options.command = {program.string(), "capture", "--output", folder, "--"};
          },
          "Write a transcript of each child here, for kclxx replay")
      ->type_name("DIR");
  add_seconds(
      command, "--grace", options.grace,
      "After a signal or a child's death: how long the children may take to shut down. Then\n"
      "their input ends, and what they have not covered is left",
      1e6);
  command.add_flag("--restart", options.restarts,
                   "Start another child in the place of one that dies, with what it did not cover");
}

}  // namespace

void add_feed_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"feed",
       "Makes each line of stdin a record, and plays the daemon to a child for each shard.\n"
       "At the end of the input, and at the first signal, the children are asked to shut down.\n"
       "Exit status: 1 a record was not checkpointed, 3 a child failed, 4 a line is too long.",
       "kclxx feed -- ./my_processor < views.jsonl\n"
       "  kclxx feed --shards 4 --key , --state positions -- ./my_processor < views.jsonl"},
      child_use::required, run);
  auto options = std::make_shared<feed_options>();
  add_options(command, *options);
  command.callback([options, &run] {
    ::setenv(io::daemon_variable, io::no_daemon, 1);
    options->command.insert(options->command.end(), run.child.begin(), run.child.end());
    run.status = static_cast<int>(feed(*options).run());
  });
}

}  // namespace kclxx::tool
