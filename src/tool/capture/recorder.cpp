// SPDX-License-Identifier: Apache-2.0
#include "tool/capture/recorder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/signals.hpp"

namespace kclxx::cli {

namespace {

using std::chrono::steady_clock;
using transcript::entry_kind;

constexpr std::size_t max_in_memory = std::size_t{16} << 20;
constexpr std::chrono::seconds longest_wait(5);
constexpr const char* too_slow = "the disk is too slow";

// A batch that moves as a whole before its first byte is copied does not wait for copies.
constexpr int wanted_pipe_size = 1 << 20;

// The dialogue goes first: what is recorded is let come together for so long, or until it is much.
// Each wake-up takes one of the cores from a daemon and a child that work in turns.
constexpr std::chrono::milliseconds gathering(1);
constexpr std::size_t much = std::size_t{256} << 10;
constexpr std::size_t block_size = std::size_t{256} << 10;
// Fits into the cache beside what else is done there.
constexpr std::size_t piece_size = std::size_t{128} << 10;

}  // namespace

recorder::recorder(const std::string& directory, std::vector<std::string> command)
    : started_(steady_clock::now()),
      file_(directory, std::move(command)),
      piece_(new char[piece_size]) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) {
    throw std::system_error(errno, std::generic_category(), "a pipe cannot be made");
  }
  read_end_ = descriptor(ends[0]);
  write_end_ = descriptor(ends[1]);
  ::fcntl(write_end_.get(), F_SETPIPE_SZ, wanted_pipe_size);  // refused: more goes through memory
  const io::signal_block no_signals;
  thread_ = std::thread([this] { run(); });
}

recorder::~recorder() {
  finish();
  thread_.join();
}

bool recorder::move_from(int from, std::size_t count) {
  while (count > 0) {
    const ssize_t n = ::splice(from, nullptr, write_end_.get(), nullptr, count, SPLICE_F_NONBLOCK);
    if (n > 0) {
      push({entry_kind::daemon_line, static_cast<std::size_t>(n)});
      count -= static_cast<std::size_t>(n);
    } else if (n == -1 && errno == EAGAIN) {  // it is full
      return copy_from(from, count);
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool recorder::copy_from(int from, std::size_t count) {
  while (count > 0) {
    passage one = with_memory(entry_kind::daemon_line, std::min(count, block_size));
    const ssize_t n = ::read(from, one.copy.get(), one.size);
    if (n == -1 && errno == EINTR) continue;
    if (n <= 0) return false;
    one.size = static_cast<std::size_t>(n);
    count -= one.size;
    push(std::move(one));
  }
  return true;
}

void recorder::add(entry_kind line_of_side, std::string_view bytes) {
  passage one = with_memory(line_of_side, bytes.size());
  std::memcpy(one.copy.get(), bytes.data(), bytes.size());
  push(std::move(one));
}

// Large blocks are used again: memory fresh from the system costs more than the copying.
recorder::passage recorder::with_memory(entry_kind kind, std::size_t size) {
  passage one{kind, size};
  one.capacity = size > block_size / 4 && size <= block_size ? block_size : size;
  if (one.capacity == block_size) {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      one.copy = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!one.copy) one.copy.reset(new char[one.capacity]);  // not filled with zeros
  return one;
}

void recorder::add_event(entry_kind event, int number) { push({event, 0, nullptr, 0, number}); }

void recorder::push(passage one) {
  const auto at = steady_clock::now() - started_;
  one.at = std::chrono::duration_cast<std::chrono::microseconds>(at);
  std::unique_lock lock(mutex_);
  if (in_memory_ > max_in_memory) {
    filled_.notify_one();
    if (!emptied_.wait_for(lock, longest_wait,
                           [&] { return has_given_up_ || in_memory_ <= max_in_memory; })) {
      give_up_locked(too_slow);
    }
  }
  if (has_given_up_) return;
  in_memory_ += one.capacity;
  unseen_ += one.size;
  queue_.push_back(std::move(one));
  if (std::exchange(is_asleep_, false) || unseen_ >= much) filled_.notify_one();
}

void recorder::give_up_locked(const std::string& why) {
  if (std::exchange(has_given_up_, true)) return;
  queue_.clear();
  in_memory_ = 0;
  emptied_.notify_all();
  std::cerr << "kclxx capture: nothing more is recorded: " + why + "; the dialogue goes on\n"
            << std::flush;
}

bool recorder::is_recording() const {
  const std::lock_guard lock(mutex_);
  return !has_given_up_;
}

void recorder::finish() {
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  filled_.notify_one();
  while (!has_finished_) {
    const std::size_t before = written_;
    emptied_.wait_for(lock, longest_wait, [&] { return has_finished_ || written_ != before; });
    if (!has_finished_ && written_ == before) return give_up_locked(too_slow);
  }
}

void recorder::discard() {
  const std::lock_guard lock(mutex_);
  has_given_up_ = true;
  file_.remove();
}

void recorder::run() {
  // The dialogue goes before its recording.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)),
                ::getpriority(PRIO_PROCESS, 0) + 5);
  std::vector<passage> taken;
  std::unique_lock lock(mutex_);
  for (await_passages(lock); !queue_.empty(); await_passages(lock)) {
    taken.clear();
    taken.swap(queue_);
    unseen_ = 0;
    for (passage& one : taken) {
      if (has_given_up_) break;
      lock.unlock();
      std::string problem;
      try {
        write(one);
      } catch (const std::exception& error) {
        problem = error.what();
      }
      lock.lock();
      if (!problem.empty()) give_up_locked(problem);
      in_memory_ -= std::min(in_memory_, one.capacity);
      if (one.capacity == block_size) free_.push_back(std::move(one.copy));
      ++written_;
      emptied_.notify_all();
    }
  }
  has_finished_ = true;
  emptied_.notify_all();
}

void recorder::await_passages(std::unique_lock<std::mutex>& lock) {
  is_asleep_ = queue_.empty();
  filled_.wait(lock, [&] { return is_finishing_ || !queue_.empty(); });
  is_asleep_ = false;
  filled_.wait_for(lock, gathering, [&] { return is_finishing_ || unseen_ >= much; });
}

void recorder::write(const passage& one) {
  switch (one.kind) {
    case entry_kind::daemon_line:
      if (!one.copy) return write_from_pipe(one);
      return file_.add_daemon_bytes(one.at, {one.copy.get(), one.size});
    case entry_kind::child_line:
      return file_.add_child_bytes(one.at, {one.copy.get(), one.size});
    default:
      transcript::entry event{one.at, one.kind};
      event.number = one.number;
      file_.add_event(event);
  }
}

// Without waiting: it is there.
void recorder::write_from_pipe(const passage& one) {
  for (std::size_t left = one.size; left > 0;) {
    const ssize_t n = ::read(read_end_.get(), piece_.get(), std::min(left, piece_size));
    if (n == -1 && errno == EINTR) continue;
    if (n <= 0) throw std::system_error(errno, std::generic_category(), "a pipe cannot be read");
    const auto size = static_cast<std::size_t>(n);
    file_.add_daemon_bytes(one.at, {piece_.get(), size});
    left -= size;
  }
}

}  // namespace kclxx::cli
