// SPDX-License-Identifier: Apache-2.0
// Where transcripts come from and go to: the seams for descriptors.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kclxx::transcript {

class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Reads up to `size` bytes; 0 is the end. Errors: what the source throws goes through.
  virtual std::size_t read(char* target, std::size_t size) = 0;
};

class byte_sink {
 public:
  virtual ~byte_sink() = default;
  /// Writes all pieces as one.
  virtual void write(std::span<const std::string_view> pieces) = 0;
};

}  // namespace kclxx::transcript
