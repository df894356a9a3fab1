// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <fcntl.h>
#include <functional>
#include <future>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "observability/log_writer.hpp"
#include "runtime/user_tasks.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

namespace kclxx::runtime {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

namespace {

/// A pipe that has room for one page.
struct page_pipe : test::open_pipe {
  page_pipe() {
    if (::fcntl(write_end(), F_SETPIPE_SZ, 4096) < 0) throw std::runtime_error("F_SETPIPE_SZ");
  }
  void fill() const {
    const std::string page(4096, '.');
    if (::write(write_end(), page.data(), page.size()) != 4096) throw std::runtime_error("write");
  }
  /// Lines without what `fill` wrote, until one has this text or the input is closed.
  [[nodiscard]] std::string read_until(std::string_view last) const {
    std::string text;
    std::array<char, 4096> piece{};
    while (text.find(last) == std::string::npos || text.back() != '\n') {
      const ssize_t n = ::read(read_end(), piece.data(), piece.size());
      if (n <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
    return text.erase(0, text.find_first_not_of('.'));
  }
};

void write(log_thread& log, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    log.write({log_level::info, "shardId-0", std::to_string(i)});
  }
}

std::function<void(const log_entry&)> writer_to(int descriptor) {
  return [output = std::make_shared<const observability::log_output>(log_options{}, descriptor)](
             const log_entry& entry) { output->write(entry); };
}

std::string lines(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += "kclxx shardId-0 info: " + std::to_string(i) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("log lines are written in order, also after a time without any", "[log_thread]") {
  const page_pipe pipe;
  log_thread log(pipe.write_end(), writer_to(pipe.write_end()));
  CHECK(log.drain(clock::now()));
  for (std::size_t round = 0; round < 3; ++round) {
    write(log, 10 * round, 10);
    REQUIRE(log.drain(clock::now() + 20s));
  }
  CHECK(pipe.read_until("29") == lines(30));
}

TEST_CASE("a pipe that nobody reads holds up no caller, and the number of lines is bounded",
          "[log_thread]") {
  const page_pipe pipe;
  pipe.fill();
  log_thread log(pipe.write_end(), writer_to(pipe.write_end()));
  constexpr std::size_t most = log_thread::max_waiting;
  write(log, 0, most + 11);
  CHECK_FALSE(log.drain(clock::now() + 10ms));
  const auto with_dropped = [](std::size_t kept, const char* dropped) {
    return lines(kept) + "kclxx warning: " + dropped +
           " log lines were dropped, since they could not be written in time\n";
  };
  const std::string text = pipe.read_until("dropped");
  // Whether or not the thread held the first line already when there was no more room.
  const bool is_as_expected =
      text == with_dropped(most, "11") || text == with_dropped(most + 1, "10");
  CHECK(is_as_expected);
  CHECK(log.drain(clock::now() + 20s));
}

TEST_CASE("lines of other levels take no room from errors", "[log_thread]") {
  const bool are_long = GENERATE(false, true);  // then their bytes are bounded
  const std::string text = are_long ? std::string(log_thread::max_waiting_bytes / 4, 'x') : "x";
  const page_pipe pipe;
  pipe.fill();
  std::vector<log_entry> written;
  log_thread log(pipe.write_end(), [&, to = writer_to(pipe.write_end())](const log_entry& entry) {
    if (written.empty()) to({log_level::info, {}, "first"});  // waits for the reader
    written.push_back(entry);
  });
  const std::size_t most = are_long ? 4 : log_thread::max_waiting;
  for (std::size_t i = 0; i < most + 20; ++i) log.write({log_level::info, {}, text});
  for (std::size_t i = 0; i < 3; ++i) log.write({log_level::error, {}, std::to_string(i)});
  CHECK(pipe.read_until("first") == "kclxx info: first\n");
  REQUIRE(log.drain(clock::now() + 20s));
  REQUIRE(written.size() >= most + 4);
  CHECK(written.size() <= most + 5);
  CHECK(written.end()[-4] == log_entry{log_level::error, {}, "0"});
  CHECK(written.end()[-2] == log_entry{log_level::error, {}, "2"});
  CHECK(written.back().text.find(" log lines were dropped") != std::string::npos);
}

TEST_CASE("at the end a log waits for its reader", "[log_thread]") {
  const page_pipe pipe;
  pipe.fill();
  log_thread log(pipe.write_end(), writer_to(pipe.write_end()));
  write(log, 0, 1000);
  std::string text;
  std::thread reader([&] {
    for (std::array<char, 1024> piece{}; text.find("999\n") == std::string::npos;) {
      const ssize_t n = ::read(pipe.read_end(), piece.data(), piece.size());
      if (n <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
  });
  CHECK(log.finish(20s, clock::now() + 60s, 50ms));
  CHECK(log.drain(clock::now()));
  reader.join();
  CHECK(text.substr(text.find_first_not_of('.')) == lines(1000));
}

TEST_CASE("lines that are not read by the end are counted in the last one", "[log_thread]") {
  const page_pipe pipe;
  pipe.fill();
  std::promise<void> begun;
  log_thread log(pipe.write_end(), [&, is_first = std::make_shared<bool>(true),
                                    to = writer_to(pipe.write_end())](const log_entry& entry) {
    if (std::exchange(*is_first, false)) begun.set_value();
    to(entry);
  });
  write(log, 0, 1000);
  begun.get_future().wait();
  const bool is_read = log.finish(20ms, clock::now() + 20s, 0ms);
  write(log, 1000, 1);
  CHECK_FALSE(is_read);
  CHECK(pipe.read_until("dropped") ==
        lines(1) +
            "kclxx warning: 1000 log lines were dropped, since they could not be written in "
            "time\n");
  CHECK(log.drain(clock::now() + 20s));
}

TEST_CASE("a line that comes late reaches no file that has its descriptor's number by then",
          "[log_thread]") {
  const bool is_text = GENERATE(false, true);
  page_pipe pipe;
  ::fcntl(pipe.write_end(), F_SETFL, O_NONBLOCK);  // so that a line takes several writes
  const std::string text(8'000, 'x');
  user_tasks tasks({}, pipe.write_end());
  is_text ? tasks.lines().write_text(text + '\n')
          : tasks.log({log_level::warning, "shardId-0", text});
  pollfd begun{pipe.read_end(), POLLIN, 0};
  REQUIRE(::poll(&begun, 1, -1) == 1);
  CHECK_FALSE(tasks.lines().drain(clock::now()));
  tasks.lines().abandon();
  page_pipe other;
  REQUIRE(::dup2(other.write_end(), pipe.write_end()) != -1);
  CHECK(pipe.read_until("x\n") == (is_text ? "" : "kclxx shardId-0 warning: ") + text + '\n');
  CHECK(tasks.lines().drain(clock::now() + 20s));
  CHECK(pipe.read_until("never").empty());  // nobody has the pipe open any more
  pipe.close_write_end();
  other.close_write_end();
  CHECK(other.read_until("never").empty());
}

TEST_CASE("user code of each kind has a thread, which it keeps between two bursts",
          "[user_tasks]") {
  static thread_local int calls_of_thread = 0;
  int handler_calls = 0;
  int log_calls = 0;
  run_options options;
  options.log = [&](const log_entry&) { log_calls = ++calls_of_thread; };
  user_tasks tasks(options, STDERR_FILENO);
  for (int round = 0; round < 3; ++round) {
    tasks.log({log_level::warning, {}, "a line"});
    tasks.run_handler([&] { handler_calls = ++calls_of_thread; });
    REQUIRE(tasks.drain(clock::now() + 20s));
  }
  CHECK(handler_calls == 3);
  CHECK(log_calls == 3);
  tasks.finish();
}

TEST_CASE("a stop is seen though a stop callback does not return", "[user_tasks]") {
  std::promise<void> release;
  user_tasks tasks({}, STDERR_FILENO);
  const std::stop_callback on_stop(tasks.stop_token(),
                                   [until = release.get_future().share()] { until.wait(); });
  tasks.await_stop();
  CHECK_FALSE(tasks.stop_token().stop_requested());
  tasks.request_stop();
  tasks.await_stop();
  CHECK(tasks.stop_token().stop_requested());
  release.set_value();
  tasks.finish();
}

TEST_CASE("a log whose reader is gone ends nothing", "[log_thread]") {
  log_thread log(-1, writer_to(-1));
  write(log, 0, 3);
  CHECK(log.drain(clock::now() + 20s));
}

}  // namespace kclxx::runtime
