// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "simulation/violation.hpp"

namespace kclxx::simulation {

/// The checkpoints that user code asks for with a handler, and the invariants about the handlers.
class requests {
 public:
  /// Returns the request's number.
  std::size_t add(const std::optional<sequence_position>& target) {
    all_.push_back({target, false});
    return all_.size() - 1;
  }

  /// Its handler is called. Errors: violation.
  void answer(std::size_t number, std::error_code result, const sequence_position& persisted) {
    const std::string request = "request " + std::to_string(number);
    if (number < first_) throw violation("handler: that of " + request + " outlived its child");
    request_state& of = all_[number];
    if (of.is_answered) throw violation("handler: that of " + request + " is called twice");
    of.is_answered = true;
    check(of.target, result, persisted);
  }

  /// What a request, or a call that waits, results in. Errors: violation.
  static void check(const std::optional<sequence_position>& target, std::error_code result,
                    const sequence_position& persisted) {
    if (!result && target > persisted) {
      throw violation("handler: a checkpoint of " + to_string(*target) + " succeeds, and only " +
                      to_string(persisted) + " is persisted");
    }
  }

  /// What is added from here on is the next child's.
  void end_child() { end_ = all_.size(); }
  /// No handler of the ended child is called from here on. Errors: violation.
  void check_ended(bool was_killed) {
    for (; first_ < end_; ++first_) {
      if (!was_killed && !all_[first_].is_answered) {
        throw violation("handler: that of request " + std::to_string(first_) + " is never called");
      }
    }
  }

 private:
  struct request_state {
    std::optional<sequence_position> target;  // std::nullopt: everything
    bool is_answered;
  };

  std::vector<request_state> all_;
  std::size_t first_ = 0;  // of the present child
  std::size_t end_ = 0;    // of the ended one's
};

}  // namespace kclxx::simulation
