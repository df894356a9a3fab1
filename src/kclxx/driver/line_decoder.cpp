// SPDX-License-Identifier: Apache-2.0
#include "driver/line_decoder.hpp"

#include <algorithm>
#include <utility>

#include "base/printable.hpp"

namespace kclxx::driver {

static_assert(io::line_buffer::padding >= protocol::decoder::padding);

namespace {

constexpr std::size_t excerpt_length = detail::longest_name;

}  // namespace

/// The daemon writes 8 KiB at a time: what is there of a large line is decoded while it writes
/// more.
bool line_decoder::read_ahead(std::span<char> line, batch_memory& memory) {
  // No record ends before that, so the excerpt is taken from a line that nothing has changed.
  if (line.size() < excerpt_length) return false;
  // What may turn out to be no message is left to decode.
  if (beginning_.empty() && protocol::is_blank({line.data(), line.size()})) return false;
  keep_beginning(line.data(), line.size());
  decoder_.read_ahead(line.data(), line.size(), memory.records, memory.arena);
  return true;
}

/// Decoding rewrites the line; what an error shows of it must be kept before.
void line_decoder::keep_beginning(const char* line, std::size_t length) {
  if (beginning_.empty()) beginning_.assign(line, std::min(length, excerpt_length));
}

line_decoder::outcome line_decoder::decode(std::shared_ptr<batch_memory> memory,
                                           std::size_t length) {
  char* const line = memory->line.data();
  if (beginning_.empty() && protocol::is_blank({line, length})) return blank{};
  keep_beginning(line, length);
  decoded found;
  auto result =
      decoder_.decode(line, length, memory->records, memory->arena, found.has_replaced_utf8);
  if (auto* error = std::get_if<protocol::decode_error>(&result)) {
    bad_line bad{"bad line from the daemon: " + (error->field.empty() ? "it" : error->field) + " " +
                 error->problem + "; the line has " + std::to_string(length) +
                 " bytes and begins: " + excerpt(length)};
    beginning_.clear();
    return bad;
  }
  beginning_.clear();
  found.message = std::get<protocol::message>(std::move(result));
  if (const auto* records = std::get_if<protocol::process_records>(&found.message.body)) {
    const std::span<const record> views(memory->records);
    found.batch = record_batch(views, std::move(memory), records->millis_behind_latest);
  }
  return found;
}

std::string line_decoder::excerpt(std::size_t length) const {
  return detail::printable(beginning_) + (length > excerpt_length ? "..." : "");
}

line_decoder::bad_line line_decoder::too_long(const char* line, std::size_t length,
                                              std::size_t limit) {
  keep_beginning(line, length);
  return {"bad line from the daemon: it is longer than the limit of " + std::to_string(limit) +
          " bytes (run_options::max_line_length) and begins: " + excerpt(length)};
}

}  // namespace kclxx::driver
