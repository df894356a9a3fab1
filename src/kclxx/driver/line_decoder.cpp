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

/// The daemon writes 8 KiB at a time: the part of a large line that has arrived is decoded while
/// the daemon writes the next part.
bool line_decoder::read_ahead(std::span<char> line, batch_memory& memory) {
  // No record ends before excerpt_length bytes, so the excerpt is taken from unchanged text.
  if (line.size() < excerpt_length) return false;
  // A blank line is no message; decode() skips it.
  if (beginning_.empty() && protocol::is_blank({line.data(), line.size()})) return false;
  keep_beginning(line.data(), line.size());
  decoder_.read_ahead(line.data(), line.size(), memory.records, memory.arena);
  return true;
}

/// Decoding rewrites the line, so what an error shows of it is kept before.
void line_decoder::keep_beginning(const char* line, std::size_t length) {
  if (beginning_.empty()) beginning_.assign(line, std::min(length, excerpt_length));
}

line_decoder::outcome line_decoder::decode(std::shared_ptr<batch_memory> memory,
                                           std::size_t length) {
  char* const line = memory->line.data();
  if (beginning_.empty() && protocol::is_blank({line, length})) return blank{};
  keep_beginning(line, length);
  decoded output;
  auto result =
      decoder_.decode(line, length, memory->records, memory->arena, output.has_replaced_utf8);
  if (auto* error = std::get_if<protocol::decode_error>(&result)) {
    bad_line bad{"bad line from the daemon: " + (error->field.empty() ? "it" : error->field) + " " +
                 error->problem + "; the line has " + std::to_string(length) +
                 " bytes and begins: " + excerpt(length)};
    beginning_.clear();
    return bad;
  }
  beginning_.clear();
  output.message = std::get<protocol::message>(std::move(result));
  if (const auto* records = std::get_if<protocol::process_records>(&output.message.body)) {
    const std::span<const record> views(memory->records);
    output.batch = record_batch(views, std::move(memory), records->millis_behind_latest);
  }
  return output;
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

struct batch_memory_pool::state {
  // The processor has one batch while the next line arrives in the reader's own buffer.
  static constexpr std::size_t capacity = 2;

  void give_back(std::unique_ptr<batch_memory> memory) noexcept {
    // What is not kept is freed after the lock: large memory takes time, and another thread may
    // take() meanwhile.
    const std::lock_guard lock(mutex);
    const bool is_dropped = drops_large && memory->is_large();
    if (!is_dropped && count < capacity) spare[count++] = std::move(memory);
  }

  std::mutex mutex;
  // The mutex guards the members below.
  std::unique_ptr<batch_memory> spare[capacity];
  std::size_t count = 0;
  bool drops_large = true;
};

batch_memory_pool::batch_memory_pool() : state_(std::make_shared<state>()) {}

std::shared_ptr<batch_memory> batch_memory_pool::take() {
  std::unique_ptr<batch_memory> memory;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->count > 0) memory = std::move(state_->spare[--state_->count]);
  }
  if (!memory) memory = std::make_unique<batch_memory>();
  return {memory.release(), [pool = state_](batch_memory* lent) {
            pool->give_back(std::unique_ptr<batch_memory>(lent));
          }};
}

void batch_memory_pool::lend_line(io::line_reader& reader) {
  const std::lock_guard lock(state_->mutex);
  for (std::size_t i = 0; i < state_->count; ++i) reader.lend(state_->spare[i]->line);
}

void batch_memory_pool::keep_large() {
  const std::lock_guard lock(state_->mutex);
  state_->drops_large = false;
}

void batch_memory_pool::release_large() {
  std::unique_ptr<batch_memory> dropped[state::capacity];
  {
    const std::lock_guard lock(state_->mutex);
    state_->drops_large = true;
    auto& spare = state_->spare;
    const auto first = std::partition(spare, spare + state_->count,
                                      [](const auto& memory) { return !memory->is_large(); });
    std::move(first, spare + state_->count, dropped);
    state_->count = static_cast<std::size_t>(first - spare);
  }
}

}  // namespace kclxx::driver
