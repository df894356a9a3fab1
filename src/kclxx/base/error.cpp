// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <string>

#include <kclxx/error.hpp>

#include "base/printable.hpp"

namespace kclxx {

namespace {

constexpr const auto& listed_names = detail::exception_names;

/// The daemon's names that are not listed. In static memory, never freed: a code may outlive
/// everything, and a daemon that invents names cannot use up the heap.
class unlisted_names {
 public:
  static constexpr int first_value = 1000;

  int value_of(std::string_view name) noexcept {
    name = shortened(name);
    const std::lock_guard lock(mutex_);
    const std::size_t count = count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (names_[i].view() == name) return first_value + static_cast<int>(i);
    }
    if (name.empty() || count == names_.size()) return shared_value;
    names_[count].assign(name);
    count_.store(count + 1, std::memory_order_release);
    return first_value + static_cast<int>(count);
  }

  [[nodiscard]] std::string_view name_of(int value) const noexcept {
    if (value == shared_value) return "(other)";
    const std::size_t count = count_.load(std::memory_order_acquire);
    if (value < first_value || value >= first_value + static_cast<int>(count)) return {};
    return names_[static_cast<std::size_t>(value - first_value)].view();
  }

 private:
  static constexpr int shared_value = first_value - 1;

  struct entry {
    std::array<char, 127> text{};
    unsigned char size = 0;

    void assign(std::string_view name) noexcept {
      std::copy(name.begin(), name.end(), text.begin());
      size = static_cast<unsigned char>(name.size());
    }
    [[nodiscard]] std::string_view view() const noexcept { return {text.data(), size}; }
  };

  /// What fits into an entry, without a part of a UTF-8 sequence at its end.
  static std::string_view shortened(std::string_view name) noexcept {
    std::size_t size = std::tuple_size_v<decltype(entry::text)>;
    if (name.size() <= size) return name;
    while (size > 0 && (static_cast<unsigned char>(name[size]) & 0xc0U) == 0x80) --size;
    return name.substr(0, size);
  }

  std::mutex mutex_;
  std::array<entry, 256> names_{};
  std::atomic<std::size_t> count_{0};
};

/// One object that is never destroyed.
template <class T>
T& immortal() noexcept {
  alignas(T) static std::byte memory[sizeof(T)];
  static T& object = *::new (static_cast<void*>(memory)) T;
  return object;
}

std::string unknown(int value) { return "unknown error " + std::to_string(value); }

class local_errors final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::lease_lost:
        return "the lease is lost: another worker continues from the last checkpoint; drop the "
               "work";
      case errc::daemon_gone:
        return "the daemon is gone: the records will be delivered again; return from the callback";
      case errc::timed_out:
        return "no answer before the deadline: the position stays pending; allow more time";
      case errc::position_out_of_range:
        return "the position is after the last record delivered to this process: checkpoint one "
               "of those, or call without a position";
      case errc::invalid_position:
        return "a sentinel cannot be checkpointed: give the position of a record";
      case errc::not_allowed_here:
        return "nothing can wait for a checkpoint in a timer: use async_checkpoint, and return";
      case errc::not_answered:
        return "the daemon sent its next message without answering the checkpoint: try again";
      case errc::fenced:
        return "fenced: a later processor has taken the shard over; drop the work";
    }
    return unknown(value);
  }
};

class daemon_errors final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx.checkpoint"; }
  [[nodiscard]] std::string message(int value) const override {
    const std::string name(daemon_error_name({value, *this}));
    switch (static_cast<checkpoint_errc>(value)) {
      case checkpoint_errc::throttled:
        return name +
               ": the lease table is throttled; checkpoint less often, or raise its capacity";
      case checkpoint_errc::dependency:
        return name +
               ": the lease table cannot be reached; see the daemon's log, and try again later";
      case checkpoint_errc::shutdown:
        return name + ": this worker no longer holds the lease; drop the work";
      case checkpoint_errc::invalid_state:
        return name +
               ": the lease table is broken, or no checkpoint is permitted now; see the "
               "daemon's log";
      case checkpoint_errc::illegal_argument:
        return name +
               ": the position is out of range; use one between the last checkpoint and "
               "the last record";
    }
    return name.empty() ? unknown(value) : name + ": see the daemon's log";
  }
};

class conditions final : public std::error_category {
  [[nodiscard]] const char* name() const noexcept override { return "kclxx.condition"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<checkpoint_condition>(value)) {
      case checkpoint_condition::lease_gone:
        return "this worker no longer holds the lease";
      case checkpoint_condition::retryable:
        return "the checkpoint failed for now";
    }
    return unknown(value);
  }
  [[nodiscard]] bool equivalent(const std::error_code& code, int value) const noexcept override {
    switch (static_cast<checkpoint_condition>(value)) {
      case checkpoint_condition::lease_gone:
        return code == errc::lease_lost || code == errc::fenced ||
               code == checkpoint_errc::shutdown;
      case checkpoint_condition::retryable:
        return code == checkpoint_errc::throttled || code == checkpoint_errc::dependency;
    }
    return false;
  }
};

}  // namespace

const std::error_category& local_category() noexcept { return immortal<local_errors>(); }

const std::error_category& checkpoint_category() noexcept { return immortal<daemon_errors>(); }

const std::error_category& checkpoint_condition_category() noexcept {
  return immortal<conditions>();
}

std::error_code make_error_code(errc value) noexcept {
  return {static_cast<int>(value), local_category()};
}

std::error_code make_error_code(checkpoint_errc value) noexcept {
  return {static_cast<int>(value), checkpoint_category()};
}

std::error_condition make_error_condition(checkpoint_condition value) noexcept {
  return {static_cast<int>(value), checkpoint_condition_category()};
}

std::error_code make_checkpoint_error_code(std::string_view daemon_name) noexcept {
  const auto listed = std::find(listed_names.begin(), listed_names.end(), daemon_name);
  const int value = listed != listed_names.end()
                        ? static_cast<int>(listed - listed_names.begin()) + 1
                        : immortal<unlisted_names>().value_of(daemon_name);
  return {value, checkpoint_category()};
}

std::string_view daemon_error_name(const std::error_code& code) noexcept {
  if (code.category() != checkpoint_category()) return {};
  const int value = code.value();
  if (value >= 1 && value <= static_cast<int>(listed_names.size())) {
    return listed_names[static_cast<std::size_t>(value - 1)];
  }
  return immortal<unlisted_names>().name_of(value);
}

}  // namespace kclxx
