// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <future>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <kclxx/run.hpp>

#include "support/eventually.hpp"
#include "support/kept_log.hpp"
#include "support/run_options.hpp"
#include "support/scripted_daemon.hpp"

namespace kclxx::test {

/// A shard that `serve` serves on a thread, and the daemon's end of its socket pair.
///
/// Thread safety: none, but of log(). What fails throws, since Catch's assertions belong to one
/// thread.
class served_shard {
 public:
  explicit served_shard(processor_factory make_processor, session_options options = {}) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == -1) {
      throw std::runtime_error("socketpair");
    }
    daemon_ = ends[0];
    child_ = ends[1];
    options.logging.level = log_level::warning;  // each session logs its lease as an info
    if (!options.log) options.log = [log = log_](const log_entry& entry) { log->add(entry); };
    status_ = std::async(std::launch::async,
                         [this, make = in_mode(std::move(make_processor), options.mode), options] {
                           return serve({child_, child_}, make, options);
                         });
  }
  ~served_shard() {
    close();
    if (status_.valid()) status_.wait();
    ::close(child_);
  }
  served_shard(const served_shard&) = delete;
  served_shard& operator=(const served_shard&) = delete;

  void send(const std::string& line) const {
    const std::string text = line + "\n";
    if (::send(daemon_, text.data(), text.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("the child does not read: " + line);
    }
  }
  void initialize(const std::string& shard_id) {
    send(R"({"action":"initialize","shardId":")" + shard_id + "\"}");
    expect_status("initialize");
  }
  void records(const std::vector<std::string>& texts, std::uint64_t first) const {
    send(records_line(texts, first));
  }
  /// The next line that is not empty.
  std::string next_line() {
    for (;;) {
      const auto end = read_.find('\n');
      if (end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        if (!line.empty()) return line;
        continue;
      }
      pollfd ready{daemon_, POLLIN, 0};
      std::array<char, 4096> bytes{};
      const ssize_t n =
          ::poll(&ready, 1, 20000) == 1 ? ::read(daemon_, bytes.data(), bytes.size()) : -1;
      if (n <= 0) throw std::runtime_error("no further line from the child");
      read_.append(bytes.data(), static_cast<std::size_t>(n));
    }
  }
  void expect_status(const std::string& action) {
    const std::string line = next_line();
    if (line != R"({"action":"status","responseFor":")" + action + "\"}") {
      throw std::runtime_error("not the status of " + action + ": " + line);
    }
  }
  /// Answers checkpoints until the status of the action. Returns their sequence numbers, 0 for the
  /// end of the shard.
  std::vector<std::uint64_t> answer_until_status(const std::string& action = "processRecords") {
    std::vector<std::uint64_t> positions;
    for (;;) {
      const std::string line = next_line();
      if (line == R"({"action":"status","responseFor":")" + action + "\"}") return positions;
      if (line.find(R"("action":"checkpoint")") == std::string::npos) {
        throw std::runtime_error("neither status nor checkpoint: " + line);
      }
      static const std::string key = R"("sequenceNumber":")";
      const auto at = line.find(key);
      positions.push_back(at == std::string::npos ? 0 : std::stoull(line.substr(at + key.size())));
      send(line);  // an answer has the same fields
    }
  }
  void process(const std::vector<std::string>& texts, std::uint64_t first) {
    records(texts, first);
    answer_until_status();
  }
  /// Waits until the child has written something, and leaves it unread.
  void await_unread() const {
    pollfd ready{daemon_, POLLIN, 0};
    if (::poll(&ready, 1, 20000) != 1) throw std::runtime_error("the child writes nothing");
  }
  /// Waits until the open callback, or the one that a sent action opens, has lasted
  /// session::callback_patience, and the loop reads.
  void await_long_callback() const {
    await_all_read();
    send("");
    await_all_read();
  }
  /// The daemon's end of the input, and of the output.
  void close() {
    if (daemon_ != -1) ::close(std::exchange(daemon_, -1));
  }
  [[nodiscard]] exit_status status() { return status_.get(); }
  /// Of a session whose input the daemon closes.
  [[nodiscard]] exit_status end() {
    close();
    return status();
  }
  [[nodiscard]] kept_log& log() const { return *log_; }

 private:
  void await_all_read() const {
    const bool is_read = eventually([this] {
      int unread = 0;
      return ::ioctl(child_, FIONREAD, &unread) == 0 && unread == 0;
    });
    if (!is_read) throw std::runtime_error("the child does not read");
  }

 protected:
  int daemon_ = -1;
  int child_ = -1;
  std::string read_;
  std::shared_ptr<kept_log> log_ = std::make_shared<kept_log>();
  std::future<exit_status> status_;
};

}  // namespace kclxx::test
