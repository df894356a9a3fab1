// SPDX-License-Identifier: Apache-2.0
#include "io/line_output.hpp"

#include "io/line_writer.hpp"

namespace kclxx::io {

std::error_code line_output::write(std::string_view lines) {
  if (!keeps_lines()) {
    if (const std::error_code ec = write_now(fd_, lines)) return ec;
    kept_ = lines;
    return {};
  }
  kept_ += lines;
  return write_kept();
}

std::error_code line_output::write_kept() {
  std::string_view rest = kept_;
  const std::error_code ec = write_now(fd_, rest);
  kept_.erase(0, ec ? kept_.size() : kept_.size() - rest.size());
  return ec;
}

}  // namespace kclxx::io
