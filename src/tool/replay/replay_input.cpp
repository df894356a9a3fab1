// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_input.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <variant>

#include "tool/files.hpp"
#include "tool/transcript/line_summary.hpp"

namespace kclxx::replay {

namespace {

class text_source : public transcript::byte_source {
 public:
  explicit text_source(std::string_view text) : unread_(text) {}
  std::size_t read(char* target, std::size_t size) override {
    const std::size_t copied = unread_.copy(target, size);
    unread_.remove_prefix(copied);
    return copied;
  }

 private:
  std::string_view unread_;
};

}  // namespace

/// Keeps what is read before rewind(), and gives it a second time afterwards.
class replay_input::rewindable_source : public transcript::byte_source {
 public:
  explicit rewindable_source(const std::string& name) : file_(name) {}

  std::size_t read(char* target, std::size_t size) override {
    if (is_rewound_ && !unread_.empty()) {
      const std::size_t copied = unread_.copy(target, size);
      unread_.remove_prefix(copied);
      return copied;
    }
    const std::size_t count = file_.read(target, size);
    if (!is_rewound_) kept_.append(target, count);
    return count;
  }
  void rewind() {
    is_rewound_ = true;
    unread_ = kept_;
  }

 private:
  tool::input_file file_;
  std::string kept_;
  std::string_view unread_;  ///< the part of kept_ that was not given a second time yet
  bool is_rewound_ = false;
};

replay_input::replay_input(std::string file) : name_(std::move(file)) {}
replay_input::replay_input(std::string name, std::string_view text)
    : name_(std::move(name)), text_(text) {}
replay_input::replay_input(replay_input&&) noexcept = default;
replay_input::~replay_input() = default;

std::unique_ptr<transcript::byte_source> replay_input::open() {
  if (text_) return std::make_unique<text_source>(*text_);
  if (!looked_at_) return std::make_unique<tool::input_file>(name_);
  looked_at_->rewind();
  return std::move(looked_at_);
}

std::optional<beginning> replay_input::look_at_beginning() {
  std::optional<beginning> result;
  try {
    looked_at_ = std::make_unique<rewindable_source>(name_);
    transcript::reader reader(*looked_at_, name_);
    transcript::entry first;
    if (reader.next(first) && first.kind == transcript::entry_kind::daemon_line) {
      transcript::line_summarizer summarizer;
      const auto summary = summarizer.summarize(first.line);
      const auto* const line = std::get_if<transcript::line_summary>(&summary);
      const std::string started = reader.head() ? reader.head()->started : "";
      if (line != nullptr && line->shard_id && line->position) {
        result = {*line->shard_id, *line->position, started};
      }
    }
  } catch (const transcript::transcript_error&) {
  } catch (const std::system_error&) {
  }
  // A file can be opened again, and thousands of files cannot be kept open.
  std::error_code ignored;
  if (std::filesystem::is_regular_file(name_, ignored)) looked_at_.reset();
  return result;
}

std::vector<std::vector<std::size_t>> by_shard(std::vector<replay_input>& inputs) {
  std::vector<std::vector<std::size_t>> groups;
  std::map<std::string, std::vector<std::pair<beginning, std::size_t>>> shards;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // A text has all of its shard, and a single file needs no order.
    std::optional<beginning> begin;
    if (inputs.size() > 1 && !inputs[i].is_text()) begin = inputs[i].look_at_beginning();
    if (begin) {
      std::string shard = begin->shard;
      shards[std::move(shard)].emplace_back(*std::move(begin), i);
    } else {
      groups.push_back({i});
    }
  }
  for (auto& [shard, transcripts] : shards) {
    std::sort(transcripts.begin(), transcripts.end());
    std::vector<std::size_t>& group = groups.emplace_back();
    for (const auto& [begin, index] : transcripts) group.push_back(index);
  }
  return groups;
}

}  // namespace kclxx::replay
