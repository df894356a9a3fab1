// SPDX-License-Identifier: Apache-2.0
// For tests of programs that archive: a store in memory, with faults at each step of a commit.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kclxx/archive/store.hpp>

namespace kclxx::archive::testing {

/// A store that changes one object at a time, as S3 does: a move is a copy and a removal.
/// Thread safety: any thread may call all functions but arrive(). Set on_step while no other does.
class memory_store final : public store {
 public:
  /// A step: it is called before and after each change of an object. It may use the store, and may
  /// throw a std::system_error, which the store turns into an outcome_unknown after a change.
  std::function<void()> on_step = [] {};

  /// on_step may throw it. Then no answer comes: the store throws an outcome_unknown, and a change
  /// that was not made yet is made in arrive().
  struct under_way {};

  /// Makes the changes that are under way.
  void arrive() {
    for (const auto& change : std::exchange(changes_under_way_, {})) change();
  }
  /// A copy of the contents of all objects, by their names.
  [[nodiscard]] std::map<std::string, std::string> objects() const {
    const std::lock_guard lock(mutex_);
    return objects_;
  }

  void put(std::span<const object> objects) override {
    for (const object& object : objects) {
      change([this, object] { objects_[object.name] = object.content; });
    }
  }
  bool put_if_absent(const object& candidate) override {
    const auto is_made = std::make_shared<bool>(false);
    change([this, candidate, is_made] {
      *is_made = objects_.emplace(candidate.name, candidate.content).second;
    });
    return *is_made;
  }
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    return found == objects_.end() ? std::nullopt : std::optional(found->second);
  }
  void move(std::span<const renaming> renamings) override {
    for (const auto& [from, to] : renamings) {
      if (const auto content = get(from)) {
        change([this, name = to, content = *content] { objects_[name] = content; });
        remove(std::vector{from});
      } else if (!get(to)) {
        throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory), from);
      }
    }
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const override {
    std::vector<std::string> names;
    for (const auto& [name, content] : objects()) {
      if (name.starts_with(folder + '/')) names.push_back(name);
    }
    return names;
  }
  void remove(std::span<const std::string> names) override {
    for (const std::string& name : names) change([this, name] { objects_.erase(name); });
  }

 private:
  void change(std::function<void()> make) {
    const auto locked = [this, make = std::move(make)] {
      const std::lock_guard lock(mutex_);
      make();
    };
    try {
      on_step();
    } catch (const under_way&) {
      changes_under_way_.emplace_back(locked);
      throw outcome_unknown(std::make_error_code(std::errc::timed_out), "no answer");
    }
    locked();
    try {
      on_step();
    } catch (const under_way&) {
      throw outcome_unknown(std::make_error_code(std::errc::timed_out), "no answer");
    } catch (const std::system_error& error) {
      throw outcome_unknown(error.code(), error.what());
    }
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::string> objects_;
  std::vector<std::function<void()>> changes_under_way_;
};

/// Calls `play` once for each step that it has: with a new memory_store each time, which calls
/// `fault` at the first step, then at the second step, and so on. Returns how many steps there are.
template <class Fault, class Play>
int at_each_step(Fault fault, Play play) {
  for (int faulty_step = 1;; ++faulty_step) {
    const auto store = std::make_shared<memory_store>();
    int step = 0;
    store->on_step = [&] {
      if (++step == faulty_step) fault();
    };
    play(store);
    if (step < faulty_step) return faulty_step - 1;
  }
}

}  // namespace kclxx::archive::testing
