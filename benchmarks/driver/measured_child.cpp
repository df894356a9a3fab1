// SPDX-License-Identifier: Apache-2.0
#include "measured_child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace bench {
namespace {

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

struct affinity {
  affinity() { check(sched_getaffinity(0, sizeof set, &set), "sched_getaffinity"); }
  affinity(const affinity&) = delete;
  affinity& operator=(const affinity&) = delete;
  ~affinity() { sched_setaffinity(0, sizeof set, &set); }
  cpu_set_t set{};
};

std::string about(pid_t process) { return "/proc/" + std::to_string(process); }

std::string contents(int fd) {
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t size = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (size <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(size));
  }
}

}  // namespace

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  check(sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

measured_child::measured_child(const std::vector<std::string>& command, std::optional<int> cpu) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  check(::pipe2(in.data(), O_CLOEXEC), "pipe");
  in_ = in[1];
  check(::pipe2(out.data(), O_CLOEXEC), "pipe");
  out_ = out[0];
  err_ = check(::memfd_create("stderr", MFD_CLOEXEC), "memfd_create");

  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_, STDERR_FILENO);
  int error = 0;
  {
    const affinity restored;
    if (cpu) pin(*cpu);
    error = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  if (error != 0) {
    pid_ = -1;
    throw std::system_error(error, std::generic_category(), "cannot start " + command[0]);
  }
}

measured_child::~measured_child() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {in_, out_, err_}) {
    if (fd >= 0) ::close(fd);
  }
}

void measured_child::fail(const std::string& what) {
  std::string said = contents(err_);
  if (said.size() > 500) said.resize(500);
  throw std::runtime_error(what + (said.empty() ? "" : "; its stderr: " + said));
}

void measured_child::write(std::string_view text) {
  constexpr std::size_t max_write = 8192;
  while (!text.empty()) {
    const ssize_t size = ::write(in_, text.data(), std::min(max_write, text.size()));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail("the child does not read");
    text.remove_prefix(static_cast<std::size_t>(size));
    if (waits_for_reads_) wait_until_read();
  }
}

void measured_child::wait_until_read() {
  constexpr timespec pause{0, 20'000};
  for (int unread = 1; unread > 0;) {
    check(::ioctl(in_, FIONREAD, &unread), "FIONREAD");
    pollfd look{in_, 0, 0};
    if (::poll(&look, 1, 0) == 1 && (look.revents & POLLERR) != 0) fail("the child does not read");
    if (unread > 0) ::nanosleep(&pause, nullptr);
  }
}

std::string_view measured_child::read_line() {
  while (true) {
    const std::size_t end = received_.find('\n', line_begin_);
    if (end != std::string::npos) {
      const std::string_view line =
          std::string_view(received_).substr(line_begin_, end - line_begin_);
      line_begin_ = end + 1;
      if (!line.empty()) return line;
      continue;
    }
    received_.erase(0, line_begin_);
    line_begin_ = 0;
    std::array<char, 4096> part;
    const ssize_t size = ::read(out_, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) fail("the child ended where an answer was due");
    received_.append(part.data(), static_cast<std::size_t>(size));
  }
}

void measured_child::wait_until_idle() const {
  using namespace std::chrono_literals;
  const auto sleeps = [](const std::filesystem::path& task) {
    std::string line;
    std::getline(std::ifstream(task / "stat"), line);
    const std::size_t state = line.rfind(") ");  // after the name
    return state != std::string::npos && line[state + 2] == 'S';
  };
  const std::string tasks = about(pid_) + "/task";
  for (int still = 0; still < 20; ++still) {
    std::this_thread::sleep_for(10ms);
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      if (!sleeps(task.path())) still = 0;
    }
  }
}

std::vector<pid_t> measured_child::processes() const {
  std::vector<pid_t> result{pid_};
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (const auto& task : std::filesystem::directory_iterator(about(result[i]) + "/task")) {
      std::ifstream children(task.path() / "children");
      for (pid_t child = 0; children >> child;) result.push_back(child);
    }
  }
  return result;
}

double measured_child::cpu_seconds() const {
  double sum = 0;
  for (const pid_t process : processes()) {
    clockid_t clock{};
    if (const int error = ::clock_getcpuclockid(process, &clock); error != 0) {
      throw std::system_error(error, std::generic_category(), "clock_getcpuclockid");
    }
    timespec time{};
    check(::clock_gettime(clock, &time), "clock_gettime");
    sum += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return sum;
}

std::size_t measured_child::memory(std::string_view field) const {
  std::size_t sum = 0;
  for (const pid_t process : processes()) {
    std::ifstream status(about(process) + "/status");
    std::string line;
    while (std::getline(status, line) && !line.starts_with(field)) continue;
    if (!status) throw std::runtime_error("/proc has no " + std::string(field) + " for the child");
    sum += std::stoul(line.substr(field.size() + 1)) * 1024;
  }
  return sum;
}

std::size_t measured_child::threads() const { return entries("/task"); }

std::size_t measured_child::descriptors() const { return entries("/fd"); }

std::size_t measured_child::entries(const char* folder) const {
  using std::filesystem::directory_iterator;
  std::ptrdiff_t sum = 0;
  for (const pid_t process : processes()) {
    sum += std::distance(directory_iterator(about(process) + folder), directory_iterator());
  }
  return static_cast<std::size_t>(sum);
}

measured_child::ending measured_child::wait() {
  ::close(in_);
  in_ = -1;
  std::array<char, 4096> ignored;
  ssize_t size = 0;
  while ((size = ::read(out_, ignored.data(), ignored.size())) > 0 ||
         (size < 0 && errno == EINTR)) {
  }
  ending end{};
  int status = 0;
  while (::wait4(pid_, &status, 0, &end.usage) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.errors = contents(err_);
  return end;
}

}  // namespace bench
