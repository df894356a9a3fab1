// SPDX-License-Identifier: Apache-2.0
// Files that are part of the program, so that it works wherever it is copied to.
#pragma once

#include <span>
#include <string_view>

namespace kclxx::tool::embedded {

struct file {
  std::string_view name;
  std::string_view text;
};

/// The files that `kclxx new` writes, after it has replaced {{name}} and the like.
extern const std::span<const file> new_project;
extern const std::string_view aws_properties;

/// The page that `kclxx replay --report` writes, after it has replaced {{data}}.
extern const std::string_view report_page;

}  // namespace kclxx::tool::embedded
