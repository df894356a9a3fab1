// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <kclxx/record_processor.hpp>

namespace kclxx::detail {

/// The shortest program's processor.
class function_processor final : public record_processor {
 public:
  explicit function_processor(std::function<void(record_batch)> process)
      : process_(std::move(process)) {}
  void process_records(record_batch batch, checkpointer&) override { process_(std::move(batch)); }

  static processor_factory factory(std::function<void(record_batch)> process) {
    return [process = std::move(process)]() -> std::unique_ptr<record_processor> {
      return std::make_unique<function_processor>(process);
    };
  }

 private:
  std::function<void(record_batch)> process_;
};

}  // namespace kclxx::detail
