// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/parked_records.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <sys/file.h>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <boost/algorithm/string/join.hpp>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "io/descriptor.hpp"
#include "protocol/base64.hpp"
#include "protocol/decimal.hpp"
#include "protocol/message.hpp"
#include "tool/command_error.hpp"
#include "tool/files.hpp"
#include "tool/foreign_json.hpp"

namespace kclxx::replay {

namespace {

using nlohmann::json;

// Limits on one batch, so that its line stays far below what a child accepts.
constexpr std::size_t max_batch_records = 1000;
constexpr std::size_t max_batch_bytes = std::size_t{8} << 20;

std::string decoded(std::string base64) {
  const auto result = protocol::decode_base64(base64.data(), base64.size());
  if (result.error != nullptr)
    throw tool::foreign_json_error(std::string("\"data\" ") + result.error);
  base64.resize(result.size);
  return base64;
}

sequence_position position_of(const json& source) {
  const std::string text = tool::foreign_text(source, "sequenceNumber");
  const auto sub = tool::find_foreign_number(source, "subSequenceNumber", 0);
  if (!sub) throw tool::foreign_json_error("\"subSequenceNumber\" is missing");
  const auto position = sequence_position::parse(text, static_cast<std::uint64_t>(*sub));
  if (!position || !position->is_number()) {
    throw tool::foreign_json_error("\"sequenceNumber\" is not a number: '" + text + "'");
  }
  return *position;
}

/// The length of the prefix "RUN-" or "RUN-NUMBER-" that a replay puts before a shard's own id; 0
/// when there is none.
std::size_t length_of_run_prefix(const std::string& shard) {
  static const std::regex run("parked-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}(-[0-9]+)?-");
  std::smatch prefix;
  return std::regex_search(shard, prefix, run, std::regex_constants::match_continuous)
             ? static_cast<std::size_t>(prefix.length())
             : 0;
}

/// Reads files of parked records (docs/failures.md). A record that was parked twice counts once,
/// also when it failed again under the name of an earlier run. Thread safety: none. Memory: all
/// records.
class parked_records {
 public:
  /// Errors: command_error.
  void add_file(const std::string& name, std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      const std::string place = name + ":" + std::to_string(++number);
      if (line.empty()) continue;
      // After a loss of power a file has zeros where text was to be written.
      line = line.substr(0, line.find_last_not_of('\0') + 1);
      if (line.find('\0') != std::string_view::npos) {
        cut_off_.push_back(place);
        continue;
      }
      try {
        add_line(name, place, line);
      } catch (const tool::foreign_json_error& error) {
        if (!error.is_cut_off()) {
          throw tool::command_error(tool::command_status::bad_transcript,
                                    place + ": is not a parked record: " + error.what());
        }
        cut_off_.push_back(place);
      }
    }
  }

  /// The shards, under names that begin with `run`.
  std::vector<parked_shard> shards(const std::string& run) {
    join_unnamed_streams();
    std::vector<parked_shard> result;
    std::map<std::string, int> streams;  // shards of different streams have the same ids
    for (const auto& [name, shard] : shards_) {
      const std::string& id = std::get<2>(name);
      const int number = ++streams[id];
      const std::string prefix = run + (number > 1 ? "-" + std::to_string(number) : "");
      result.push_back(dialogue_of(prefix + "-" + id, shard));
      result.back().shard = id;
    }
    return result;
  }

  /// "FILE:LINE" of each line that a crash has cut off. The record of such a line was not complete,
  /// so the daemon has delivered it again.
  [[nodiscard]] const std::vector<std::string>& cut_off() const noexcept { return cut_off_; }

 private:
  struct parked_record {
    std::string place;  ///< "FILE:LINE"
    std::optional<std::string> data;
    std::optional<std::string> partition_key;
    std::optional<std::chrono::milliseconds> arrival;
  };
  struct shard {
    std::vector<std::string> files;
    std::map<sequence_position, parked_record> records;
    std::size_t lines = 0;

    void add(const sequence_position& position, parked_record record) {
      const auto [entry, is_new] = records.try_emplace(position, record);
      const parked_record& earlier = entry->second;
      if (is_new ||
          (earlier.data == record.data && earlier.partition_key == record.partition_key)) {
        return;
      }
      throw tool::command_error(
          tool::command_status::bad_transcript,
          record.place + ": is another record than " + earlier.place +
              ", with the same position in the same shard: are they of two streams?");
    }
    void add(shard source) {
      for (std::string& file : source.files) {
        if (std::find(files.begin(), files.end(), file) == files.end())
          files.push_back(std::move(file));
      }
      lines += source.lines;
      for (auto& [position, record] : source.records) add(position, std::move(record));
    }
  };
  /// Application, stream and id: shards of different streams have the same ids.
  using shard_name = std::tuple<std::string, std::string, std::string>;

  void add_line(const std::string& file, const std::string& place, std::string_view line) {
    const json source = tool::parse_foreign(line);
    if (!source.is_object()) throw tool::foreign_json_error("no object");
    parked_record record{place, {}, tool::find_foreign_text(source, "partitionKey"), {}};
    if (const auto arrival =
            tool::find_foreign_number(source, "approximateArrivalTimestamp",
                                      -protocol::most_milliseconds, protocol::most_milliseconds)) {
      record.arrival = std::chrono::milliseconds(*arrival);
    }
    const auto position = position_of(source);
    const std::string id = tool::foreign_text(source, "shard");
    shard& target = shards_[{tool::find_foreign_text(source, "application").value_or(""),
                             tool::find_foreign_text(source, "stream").value_or(""),
                             id.substr(length_of_run_prefix(id))}];
    if (!source.contains("data")) throw tool::foreign_json_error("\"data\" is missing");
    if (auto data = tool::find_foreign_text(source, "data")) {
      record.data = decoded(*std::move(data));
    }
    if (target.files.empty() || target.files.back() != file) target.files.push_back(file);
    ++target.lines;
    target.add(position, std::move(record));
  }
  /// A record that fails again in a replay without KCLXX_APPLICATION_NAME is parked without the
  /// names of its application and stream. It joins the shard of the same id, if there is only one.
  void join_unnamed_streams() {
    for (auto unnamed = shards_.begin(); unnamed != shards_.end();) {
      const auto& [application, stream, id] = unnamed->first;
      const auto has_id = [&id = id](const auto& entry) { return std::get<2>(entry.first) == id; };
      if (!application.empty() || !stream.empty() ||
          std::count_if(shards_.begin(), shards_.end(), has_id) != 2) {
        ++unnamed;
        continue;
      }
      // Its empty names come before any name in the map's order.
      const auto named = std::find_if(std::next(unnamed), shards_.end(), has_id);
      named->second.add(std::move(unnamed->second));
      unnamed = shards_.erase(unnamed);
    }
  }
  static parked_shard dialogue_of(const std::string& name, const shard& shard) {
    parked_shard result;
    result.files = boost::join(shard.files, ", ");
    result.lines = shard.lines;
    result.dialogue = daemon_model::initialize_line(name, sequence_position("TRIM_HORIZON")) + "\n";
    std::vector<record> batch;
    std::deque<std::string> numbers;
    std::size_t bytes = 0;
    const auto end_batch = [&] {
      if (batch.empty()) return;
      result.dialogue += daemon_model::process_records_line(batch, 0);
      result.dialogue += '\n';
      batch.clear();
      numbers.clear();
      bytes = 0;
    };
    for (const auto& [position, parked] : shard.records) {
      result.positions.push_back(position);
      batch.emplace_back(record::fields{parked.data, parked.partition_key,
                                        numbers.emplace_back(position.sequence_number()),
                                        position.sub_sequence_number(), parked.arrival});
      bytes += parked.data ? parked.data->size() : 0;
      if (batch.size() == max_batch_records || bytes >= max_batch_bytes) end_batch();
    }
    end_batch();
    result.dialogue += daemon_model::action_line(protocol::action_kind::shutdown_requested) + "\n";
    return result;
  }

  std::map<shard_name, shard> shards_;
  std::vector<std::string> cut_off_;
};

/// Waits for a process that began to park a record before the file was moved away: it writes the
/// line under this lock. Any process that can read the file can hold the lock, so there is a limit.
void wait_for_writer(const std::string& file) {
  using namespace std::chrono_literals;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return;  // a pipe can be opened only once
  const io::descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  for (int tries = 0; ::flock(opened.get(), LOCK_SH | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    if (tries == 100) {
      std::cerr << "kclxx replay: " << file
                << ": another process has locked it for 5 s, so it is read as it is\n";
      return;
    }
    std::this_thread::sleep_for(50ms);
  }
}

}  // namespace

bool is_run(std::string_view name) {
  return length_of_run_prefix(std::string(name) + "-") == name.size() + 1;
}

std::vector<parked_shard> read_parked_files(const std::vector<std::string>& files,
                                            std::string run) {
  if (run.empty()) run = "parked-" + tool::unique_name();
  parked_records records;
  for (const std::string& file : files) {
    wait_for_writer(file);
    records.add_file(file, tool::text_of_file(file));
  }
  std::vector<parked_shard> shards = records.shards(run);
  for (const std::string& place : records.cut_off()) {
    std::cerr << "kclxx replay: " << place
              << ": left out, since it is cut off: a record is complete once its line is whole\n";
  }
  if (shards.empty()) {
    throw tool::command_error(tool::command_status::bad_transcript,
                              "there is no parked record in the files");
  }
  std::cerr << "kclxx replay: the names of the shards begin with " << run
            << "; to continue this run if it breaks off: --as " << run << "\n";
  return shards;
}

void count_parked(const std::vector<parked_shard>& shards, replay_result& result) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    replayed_shard& shard = result.shards[i];
    const auto reached = shard.summary.resume.value_or(sequence_position("TRIM_HORIZON"));
    const auto& positions = shards[i].positions;
    const auto end = std::upper_bound(positions.begin(), positions.end(), reached);
    shard.parked = parked_count{shards[i].shard, shards[i].lines, positions.size(),
                                static_cast<std::size_t>(end - positions.begin())};
  }
}

}  // namespace kclxx::replay
