// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_daemon.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "support/eventually.hpp"

namespace kclxx::test {

namespace {

using clock = std::chrono::steady_clock;

void fill_up(int pipe) {
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  const std::string page(4096, '.');
  while (::write(pipe, page.data(), page.size()) > 0) {
  }
  ::fcntl(pipe, F_SETFL, 0);
}

std::size_t status_value(const std::string& text, std::string_view name) {
  std::ifstream status(text + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::stoul(line.substr(name.size()));
  }
  return 0;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

scripted_daemon::scripted_daemon(const std::vector<std::string>& command,
                                 const start_options& options) {
  const bool from_file = !options.input_file.empty();
  const int input =
      from_file ? ::open(options.input_file.c_str(), O_RDONLY | O_CLOEXEC) : input_.read_end();
  if (options.stderr_is_full) fill_up(error_.write_end());
  if (options.stdout_is_non_blocking) ::fcntl(output_.write_end(), F_SETFL, O_NONBLOCK);
  std::vector<std::string> words = command;
  if (const char* launcher = std::getenv("KCLXX_TEST_LAUNCHER"))
    words.insert(words.begin(), launcher);
  std::vector<std::string> variables = options.environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  ::signal(SIGPIPE, SIG_IGN);
  pid_ = ::fork();
  if (pid_ == -1) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    // As a child of the daemon, it inherits no descriptor and no signal disposition of this
    // process.
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    ::dup2(input, 0);
    ::dup2(output_.write_end(), 1);
    ::dup2(error_.write_end(), 2);
    for (int fd = 3; fd < 256; ++fd) ::close(fd);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  if (from_file) {
    ::close(input);
    close_input();
  }
  input_.close_read_end();
  output_.close_write_end();
  error_.close_write_end();
  if (options.stderr_is_full) return;
  read_error_ = error_.read_end();
  ::fcntl(read_error_, F_SETFL, O_NONBLOCK);
}

scripted_daemon::~scripted_daemon() {
  if (pid_ == -1) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void scripted_daemon::fail(const std::string& what) {
  drain_stderr();
  throw dialogue_error(what + "\n--- dialogue\n" + dialogue_ + "--- stderr\n" + stderr_);
}

bool scripted_daemon::send_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(input_.write_end(), bytes.data(), bytes.size());
    if (n == -1 && errno == EINTR) continue;
    if (n == -1) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void scripted_daemon::send(std::string_view line) {
  dialogue_.append("> ").append(line.substr(0, 300)).append("\n");
  if (!send_raw(std::string(line) + "\n")) fail("the child does not read");
}

void scripted_daemon::initialize() {
  send(R"({"action":"initialize","shardId":"shardId-000000000007",)"
       R"("sequenceNumber":"TRIM_HORIZON","subSequenceNumber":0})");
}

void scripted_daemon::records(const std::vector<std::string>& texts, std::uint64_t first) {
  send(records_line(texts, first));
}

void scripted_daemon::answer(std::string_view error) {
  send(R"({"action":"checkpoint",)" + last_checkpoint_ + R"(,"error":)" +
       (error.empty() ? "null" : "\"" + std::string(error) + "\"") + "}");
}

bool scripted_daemon::fill(std::chrono::milliseconds limit) {
  pollfd ready{output_.read_end(), POLLIN, 0};
  if (::poll(&ready, 1, static_cast<int>(limit.count())) != 1) return false;
  char bytes[4096];
  const ssize_t n = ::read(output_.read_end(), bytes, sizeof bytes);
  if (n <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(n));
  return true;
}

std::string scripted_daemon::next_line() {
  const auto deadline = clock::now() + answer_limit;
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.empty()) continue;
      dialogue_.append("< ").append(line).append("\n");
      static constexpr std::string_view checkpoint = R"({"action":"checkpoint",)";
      if (line.starts_with(checkpoint)) {
        last_checkpoint_ = line.substr(checkpoint.size(), line.size() - checkpoint.size() - 1);
      }
      return line;
    }
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    if (limit.count() <= 0 || !fill(limit)) fail("the child wrote no more");
    drain_stderr();
  }
}

void scripted_daemon::expect(std::string_view line) {
  if (next_line() != line) fail("expected: " + std::string(line));
}

void scripted_daemon::expect_status(std::string_view action) {
  expect(R"({"action":"status","responseFor":")" + std::string(action) + "\"}");
}

void scripted_daemon::expect_checkpoint(std::string_view sequence_number) {
  expect(R"({"action":"checkpoint","sequenceNumber":")" + std::string(sequence_number) +
         R"(","subSequenceNumber":0})");
}

void scripted_daemon::expect_null_checkpoint() {
  expect(R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})");
}

bool scripted_daemon::is_silent_for(std::chrono::milliseconds time) {
  return buffer_.find_first_not_of('\n') == std::string::npos &&
         (!fill(time) || buffer_.find_first_not_of('\n') == std::string::npos);
}

std::string scripted_daemon::read(std::size_t size) {
  while (buffer_.size() < size && fill(answer_limit)) {
  }
  std::string text = buffer_.substr(0, size);
  buffer_.erase(0, text.size());
  return text;
}

std::string scripted_daemon::rest(std::chrono::milliseconds silence) {
  while (fill(silence)) {
  }
  return std::exchange(buffer_, {});
}

bool scripted_daemon::await_broken_input() const {
  pollfd broken{input_.write_end(), 0, 0};
  const auto limit = std::chrono::milliseconds(answer_limit);
  return ::poll(&broken, 1, static_cast<int>(limit.count())) == 1 &&
         (broken.revents & POLLERR) != 0;
}

void scripted_daemon::signal_group(int signal) const {
  if (pid_ != -1) ::kill(-pid_, signal);
}

int scripted_daemon::wait_exit(std::chrono::milliseconds limit) {
  int status = 0;
  const auto has_exited = [&] {
    drain_stderr();
    fill(std::chrono::milliseconds(1));
    return ::waitpid(pid_, &status, WNOHANG) != 0;
  };
  if (!eventually(has_exited, limit)) fail("the child did not exit");
  pid_ = -1;
  drain_stderr();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// Reads what there is. Returns true at the end of stderr.
bool scripted_daemon::drain_stderr() {
  char bytes[4096];
  ssize_t n = 0;
  while ((n = ::read(read_error_, bytes, sizeof bytes)) > 0) {
    stderr_.append(bytes, static_cast<std::size_t>(n));
  }
  return n == 0;
}

/// Returns false when neither text nor the end came before the deadline.
bool scripted_daemon::wait_for_stderr(std::chrono::steady_clock::time_point deadline) const {
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
  pollfd ready{read_error_, POLLIN, 0};
  return limit.count() > 0 && ::poll(&ready, 1, static_cast<int>(limit.count())) == 1;
}

void scripted_daemon::await_end_of_stderr() {
  const auto deadline = clock::now() + answer_limit;
  while (!drain_stderr()) {
    if (!wait_for_stderr(deadline)) fail("stderr is held open");
  }
}

void scripted_daemon::kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string scripted_daemon::stderr_so_far() {
  drain_stderr();
  return stderr_;
}

std::string scripted_daemon::await_stderr(std::string_view text) {
  const auto deadline = clock::now() + answer_limit;
  for (;;) {
    const bool has_ended = drain_stderr();
    if (stderr_.find(text) != std::string::npos) return stderr_;
    if (has_ended || !wait_for_stderr(deadline)) fail("not on stderr: " + std::string(text));
  }
}

std::size_t scripted_daemon::resident_kib() const {
  return status_value("/proc/" + std::to_string(pid_), "VmRSS:");
}

std::size_t scripted_daemon::peak_resident_kib() const {
  return status_value("/proc/" + std::to_string(pid_), "VmHWM:");
}

std::size_t scripted_daemon::wake_ups() const {
  std::size_t sum = 0;
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    sum += status_value(task.path().string(), "voluntary_ctxt_switches:");
  }
  return sum;
}

std::string base64(std::string_view bytes) {
  static constexpr char alphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    const std::size_t size = bytes.size() - at;
    out += alphabet[bits >> 18];
    out += alphabet[bits >> 12 & 63];
    out += size > 1 ? alphabet[bits >> 6 & 63] : '=';
    out += size > 2 ? alphabet[bits & 63] : '=';
  }
  return out;
}

std::string records_line(const std::vector<std::string>& texts, std::uint64_t first) {
  std::string line = R"({"action":"processRecords","records":[)";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) line += ",";
    line +=
        R"({"data":")" + base64(texts[i]) + R"(","partitionKey":"key","sequenceNumber":")" +
        std::to_string(first + i) +
        R"(","approximateArrivalTimestamp":1600000000000,"subSequenceNumber":0,"action":"record"})";
  }
  return line + R"(],"millisBehindLatest":0})";
}

}  // namespace kclxx::test
