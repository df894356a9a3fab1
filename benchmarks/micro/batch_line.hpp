// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace kclxx::bench {

/// A processRecords line of that many records of that many random bytes, without its newline, in
/// the form that the daemon gives it (KCL 2.x and 3.x: `action` is a record's last field).
std::string batch_line(std::size_t records, std::size_t bytes);

/// The same with white space in it, which the daemon does not write: for the general reader.
std::string spaced_batch_line(std::size_t records, std::size_t bytes);

}  // namespace kclxx::bench
