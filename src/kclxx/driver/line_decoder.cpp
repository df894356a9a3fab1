// SPDX-License-Identifier: Apache-2.0
#include "driver/line_decoder.hpp"

#include <algorithm>
#include <malloc.h>
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

namespace {

// glibc raises its mmap threshold to the largest block that was freed, so that the next large
// vector of records comes from the heap, where a small block after it would pin it. Lines have
// memory of their own.
void return_to_system() noexcept {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace

struct batch_memory_pool::state {
  // One is with the processor while the next line arrives in the reader's own buffer.
  static constexpr std::size_t kept = 2;

  void give_back(std::unique_ptr<batch_memory> memory) noexcept {
    bool is_dropped = false;
    {
      const std::lock_guard lock(mutex);
      is_dropped = drops_large && memory->is_large();
      if (!is_dropped && count < kept) spare[count++] = std::move(memory);
    }
    memory.reset();
    if (is_dropped) return_to_system();
  }

  std::mutex mutex;
  std::unique_ptr<batch_memory> spare[kept];
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
  std::unique_ptr<batch_memory> dropped[state::kept];
  {
    const std::lock_guard lock(state_->mutex);
    state_->drops_large = true;
    auto& spare = state_->spare;
    const auto first = std::partition(spare, spare + state_->count,
                                      [](const auto& memory) { return !memory->is_large(); });
    std::move(first, spare + state_->count, dropped);
    state_->count = static_cast<std::size_t>(first - spare);
  }
  for (auto& memory : dropped) memory.reset();
  return_to_system();
}

}  // namespace kclxx::driver
