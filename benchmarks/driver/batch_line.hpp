// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace bench {

/// A processRecords line as the daemon writes it (daemon_model, which the conformance tests hold
/// against the daemon's own classes), built once. Only its sequence numbers change from
/// batch to batch, because a client may rightly leave out a checkpoint that would not go forward.
class batch_line {
 public:
  /// Records of `bytes` random bytes each, the same in every run.
  batch_line(std::size_t records, std::size_t bytes);

  /// Numbers the records for batch `batch`, higher than all of the batches before.
  void renumber(std::uint64_t batch);

  /// Newline included.
  [[nodiscard]] std::string_view text() const noexcept { return {text_.get(), size_}; }
  [[nodiscard]] std::string_view last_sequence_number() const noexcept;
  [[nodiscard]] std::size_t records() const noexcept { return batch_digits_.size(); }
  /// Of the records' data, before base64.
  [[nodiscard]] std::size_t payload() const noexcept { return payload_; }

 private:
  struct free_memory {
    void operator()(char* memory) const noexcept { std::free(memory); }
  };

  std::unique_ptr<char, free_memory> text_;  // on a page, where the kernel's copy is fastest
  std::size_t size_ = 0;
  std::vector<std::size_t> batch_digits_;  // where in the text; one place a record
  std::size_t payload_;
};

}  // namespace bench
