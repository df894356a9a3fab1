// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <boost/algorithm/string/replace.hpp>

#include <kclxx/sequence_position.hpp>

#include "io/process_identity.hpp"
#include "tool/command.hpp"
#include "tool/command_error.hpp"
#include "tool/embedded.hpp"
#include "tool/files.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/child_dialogue.hpp"
#include "tool/replay/faults.hpp"
#include "tool/replay/parked_records.hpp"
#include "tool/replay/player.hpp"
#include "tool/replay/replay_result.hpp"
#include "tool/transcript/line_summary.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::replay {

using namespace tool;
namespace fs = std::filesystem;

namespace {

/// How a transcript begins. It decides on the order in which the transcripts of a shard are played.
struct beginning {
  std::string shard;
  sequence_position position;
  std::string started;  ///< the header's time; empty in a file that has only the daemon's lines

  auto operator<=>(const beginning&) const = default;
};

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

/// Keeps what is read before rewind(), and gives it a second time afterwards.
class rewindable_source : public transcript::byte_source {
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
  input_file file_;
  std::string kept_;
  std::string_view unread_;  ///< the part of kept_ that was not given a second time yet
  bool is_rewound_ = false;
};

/// A transcript that is to be played. Thread safety: none.
class replay_input {
 public:
  /// A file's name; "-" is stdin.
  explicit replay_input(std::string file) : name_(std::move(file)) {}
  /// Lifetime: the text outlives the input.
  replay_input(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {}

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool is_text() const noexcept { return text_.has_value(); }

  /// Reads the first lines. std::nullopt: it does not begin with initialize, or cannot be read; the
  /// player reports that. Precondition: it is no text, and open() was not called.
  /// Blocking: until the first lines are there. Errors: cancelled.
  [[nodiscard]] std::optional<beginning> look_at_beginning() {
    std::optional<beginning> result;
    try {
      looked_at_ = std::make_unique<rewindable_source>(name_);
      transcript::reader reader(*looked_at_, name_);
      transcript::entry first;
      bool is_found = false;  // a child may write before the daemon does
      while (!is_found && reader.next(first)) {
        is_found = first.kind == transcript::entry_kind::daemon_line;
      }
      if (is_found) {
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
    if (fs::is_regular_file(name_, ignored)) looked_at_.reset();
    return result;
  }

  /// A source of the whole transcript. A pipe can be opened once. Errors: std::system_error.
  [[nodiscard]] std::unique_ptr<transcript::byte_source> open() {
    if (text_) return std::make_unique<text_source>(*text_);
    if (!looked_at_) return std::make_unique<input_file>(name_);
    looked_at_->rewind();
    return std::move(looked_at_);
  }

 private:
  std::string name_;
  std::optional<std::string_view> text_;
  /// The source of a pipe whose first lines were read, which cannot be read a second time.
  std::unique_ptr<rewindable_source> looked_at_;
};

/// Groups the inputs by their shards. A group has indices, in the order of the positions where the
/// transcripts begin, and then of the times when they were started. An input of an unknown shard is
/// a group of its own.
/// Blocking: until the first lines of each input are there. Errors: cancelled.
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

void read_lines(const fs::path& file, const std::string& prefix, std::vector<std::string>& lines) {
  std::ifstream in(file, std::ios::binary);
  if (!in) tool::cannot_set_up(file.string() + " cannot be opened");
  for (std::string line; std::getline(in, line);) lines.push_back(prefix + line);
}

/// The lines of a file, or of all files of a directory, each line after its file's name. The lines
/// are sorted: shards that are played in parallel write them in any order.
/// Errors: command_error when there is no such file.
std::vector<std::string> read_effects(const fs::path& path) {
  std::vector<std::string> lines;
  if (!fs::is_directory(path)) {
    read_lines(path, "", lines);
  } else {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
      if (!entry.is_regular_file()) continue;
      read_lines(entry.path(), entry.path().lexically_relative(path).string() + ": ", lines);
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

effect_comparison compare_effects(const std::vector<std::string>& without_faults,
                                  const std::vector<std::string>& with_faults) {
  effect_comparison result;
  // Counts the lines that `lines` has more often than `reference`, and keeps the first ones.
  const auto surplus = [](const auto& lines, const auto& reference,
                          std::vector<std::string>& kept) {
    std::set_difference(lines.begin(), lines.end(), reference.begin(), reference.end(),
                        std::back_inserter(kept));
    const std::size_t count = kept.size();
    kept.resize(std::min(count, effect_comparison::max_kept));
    return count;
  };
  result.lost_count = surplus(without_faults, with_faults, result.lost);
  result.extra_count = surplus(with_faults, without_faults, result.extra);
  result.same_count = with_faults.size() - result.extra_count;
  return result;
}

/// Stands for a run's directory in the child's command and in the name of the file.
constexpr std::string_view placeholder = "{dir}";

constexpr std::size_t max_parallel_shards = 8;

/// Why the transcript cannot be compared with a child, or nullptr.
const char* why_not_comparable(const transcript::reader& reader) {
  return !reader.head()
             ? "the file has only the daemon's lines, so --expect has nothing to compare with"
         : reader.head()->command.empty()
             ? "it was made without a child, so there is nothing to compare with"
             : nullptr;
}

/// Plays the transcript against one child, the first or a successor.
void play_to_child(replay_input& input, const std::vector<std::string>& command,
                   const replay::options& options, shard_play& shard) {
  const auto source = input.open();
  std::optional<transcript::reader> reader;
  try {
    reader.emplace(*source, input.name());
  } catch (const transcript::transcript_error& error) {
    shard.result.damage = diagnostic{error.line_number(), error.problem(), {}};
    return;
  }
  if (const char* const problem = options.compares ? why_not_comparable(*reader) : nullptr) {
    shard.result.damage = diagnostic{1, problem, {}};
    return;
  }
  child_dialogue child(command, child_dialogue::error_output::passed_on);
  player player(options, shard, *reader, child);
  while (player.play_next()) {
  }
  player.finish();
}

/// Plays one transcript. What is wrong with it or the child is in the summary.
/// Errors: std::system_error when the file cannot be read; start_error.
summary replay_shard(replay_input& input, const std::vector<std::string>& command,
                     const replay::options& options) {
  shard_play shard(options);
  do {
    play_to_child(input, command, options, shard);
  } while (shard.successor_begins);
  return std::move(shard.result);
}

void play(replayed_shard& shard, replay_input& input, const std::vector<std::string>& child,
          const replay::options& options) {
  try {
    shard.summary = replay_shard(input, child, options);
  } catch (const cancelled&) {  // reported for all shards together
  } catch (const std::exception& error) {
    shard.setup_error = error.what();
  }
}

/// Plays transcripts, each against a child of its own: those of one shard in sequence,
/// several shards at a time. What is wrong with one of them is in its part of the result.
/// Errors: cancelled; std::system_error when no thread can be started.
replay_result replay_files(std::vector<replay_input>& inputs, const std::vector<std::string>& child,
                           const replay::options& options) {
  // Several threads write into the result. The part of a transcript belongs to the thread that
  // plays it.
  replay_result result;
  for (const replay_input& input : inputs) result.shards.push_back({input.name(), {}, {}});
  const auto shards = by_shard(inputs);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < shards.size(); i = next++) {
      for (const std::size_t input : shards[i]) {
        if (cancellation_signal() == 0) play(result.shards[input], inputs[input], child, options);
      }
    }
  };
  std::vector<std::jthread> threads;
  try {
    const std::size_t count = std::min(max_parallel_shards, shards.size());
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    if (threads.empty()) throw;  // the threads that could be started play all shards
  }
  threads.clear();
  throw_if_cancelled();
  return result;
}

/// Plays transcripts without faults, then with those of `options`, and compares what the child left
/// in the file or directory `effects`. This name and the words of `child` may have the placeholder.
/// Returns the result of the second run.
/// Errors: those of replay_files; command_error when the first run failed or left no effects.
replay_result replay_files_twice(std::vector<replay_input>& inputs,
                                 const std::vector<std::string>& child,
                                 const replay::options& options, const std::string& effects) {
  // It has the directories of both runs.
  temporary_folder folder(fs::temp_directory_path() / "kclxx-effects-");
  const auto make_directory = [&folder](const char* run) {
    fs::create_directory(folder.path() / run);
    return (folder.path() / run).string();
  };
  const auto play_in = [&](const std::string& directory, const replay::options& play_options) {
    std::vector<std::string> command = child;
    for (std::string& word : command) boost::replace_all(word, placeholder, directory);
    return replay_files(inputs, command, play_options);
  };
  const std::string reference_directory = make_directory("without-faults");
  replay::options without_faults = options;
  without_faults.faults = {};
  const replay_result reference = play_in(reference_directory, without_faults);
  if (reference.status() != command_status::ok) {
    print_text(std::cerr, reference);
    throw command_error(reference.status(), "the run without faults failed");
  }
  const std::vector<std::string> expected =
      read_effects(boost::replace_all_copy(effects, placeholder, reference_directory));
  const std::string faulty_directory = make_directory("with-faults");
  replay_result result = play_in(faulty_directory, options);
  const fs::path faulty = boost::replace_all_copy(effects, placeholder, faulty_directory);
  // A child that a fault has ended early may have left nothing.
  result.effects = compare_effects(
      expected, fs::exists(faulty) ? read_effects(faulty) : std::vector<std::string>{});
  if (!result.effects->is_same()) result.effects->kept_in = folder.keep().string();
  return result;
}

struct replay_arguments {
  std::vector<std::string> files;
  replay::options options;
  std::optional<std::string> faults;
  bool prints_json = false;
  bool is_parked = false;
  std::string run;  ///< the name of a run of parked records that is to be continued
  std::string report;
  std::string effects;
};

/// Errors: command_error for a file that cannot be read a second time.
void require_files_to_read_again(const replay_arguments& arguments) {
  for (const std::string& file : arguments.files) {
    std::error_code ignored;
    if (file != "-" && (!std::filesystem::exists(file, ignored) ||
                        std::filesystem::is_regular_file(file, ignored))) {
      continue;
    }
    throw command_error(command_status::usage,
                        file + " cannot be read twice, which kill-at, kill and --effects need");
  }
}

void require_comparable_effects(const replay_arguments& arguments,
                                const std::vector<std::string>& child) {
  const auto has_placeholder = [](const std::string& word) {
    return word.find(placeholder) != std::string::npos;
  };
  if (arguments.options.faults == faults{}) {
    throw command_error(command_status::usage,
                        "--effects compares with a run without faults: --faults is missing");
  }
  if (!has_placeholder(arguments.effects) ||
      std::none_of(child.begin(), child.end(), has_placeholder)) {
    throw command_error(command_status::usage,
                        "--effects needs {dir} in its FILE and in the child's command: a directory "
                        "that each of the two runs has of its own");
  }
}

void validate(const replay_arguments& arguments, const std::vector<std::string>& child) {
  if (std::count(arguments.files.begin(), arguments.files.end(), "-") > 1) {
    throw command_error(command_status::usage, "- is there twice: stdin is one transcript");
  }
  const bool kills = replay::kills(arguments.options.faults);
  if (kills || !arguments.effects.empty()) require_files_to_read_again(arguments);
  if (!arguments.effects.empty()) require_comparable_effects(arguments, child);
  if (kills && arguments.options.compares) {
    throw command_error(command_status::usage,
                        "--expect excludes kill-at and kill: no recording has the answers of a "
                        "successor");
  }
}

int run_replay(replay_arguments& arguments, const std::vector<std::string>& child) {
  try {
    if (arguments.faults) arguments.options.faults = parse_faults(*arguments.faults);
  } catch (const std::invalid_argument& error) {
    throw command_error(command_status::usage, error.what());
  }
  std::vector<parked_shard> parked;
  std::vector<replay_input> inputs;
  if (arguments.is_parked) {
    parked = read_parked_files(arguments.files, arguments.run);
    for (const auto& shard : parked) inputs.emplace_back(shard.files, shard.dialogue);
  } else {
    validate(arguments, child);
    for (const std::string& file : arguments.files) inputs.emplace_back(file);
  }
  std::optional<result_file> report;
  if (!arguments.report.empty()) {
    arguments.options.keeps_timeline = true;
    const std::string_view page = embedded::report_page;
    // The file is opened now, so that a mistake in its name is known before an hour of replay.
    report.emplace(arguments.report, page.substr(0, page.find("-->")));
  }
  install_signal_handlers(ignored_signals::stay_ignored);
  replay_result result =
      arguments.effects.empty()
          ? replay_files(inputs, child, arguments.options)
          : replay_files_twice(inputs, child, arguments.options, arguments.effects);
  if (arguments.is_parked) count_parked(parked, result);
  if (arguments.prints_json) {
    print_json(std::cout, result);
  } else {
    print_text(std::cout, result);
  }
  if (report) {
    print_report(report->stream(), result);
    report->commit();
  }
  return static_cast<int>(result.status());
}

void add_options(CLI::App& command, replay_arguments& arguments) {
  add_option(command, "", "FILE", arguments.files,
             "Transcripts. Those of one shard are played one after another. - is stdin")
      ->required();
  auto* const parked = command.add_flag(
      "--parked", arguments.is_parked,
      "The files have parked records: deliver each of them again, in order, under names of\n"
      "shards that no run had before");
  add_option(command, "RUN", "--as", arguments.run,
             "Continue a run of --parked that broke off, under the name that it has printed")
      ->needs(parked)
      ->check([](const std::string& name) {
        return is_run(name) ? std::string() : name + " is not the name of a run";
      });
  command
      .add_option_function<std::string>(
          "--answers",
          [&arguments](const std::string& from) {
            arguments.options.repeats_failures = from == "recorded";
          },
          "Checkpoints fail where the recorded ones failed, or only where the child is wrong")
      ->check(CLI::IsMember({"recorded", "model"}).description(""))
      ->type_name("recorded|model")
      ->default_str("recorded");
  command
      .add_option_function<std::string>(
          "--faults", [&arguments](const std::string& text) { arguments.faults = text; },
          "Faults to inject, NAME=VALUE separated by commas:\n"
          "throttle=P, dependency=P: checkpoints fail with this probability;\n"
          "shutdown-at=N: shutdownRequested in place of batch N;\n"
          "lease-lost-at=N: the lease is lost while batch N is processed;\n"
          "end-of-input-at=N: the daemon dies when batch N is written;\n"
          "kill-at=N: the child is killed when batch N is written, and a successor\n"
          "continues after what was persisted;\n"
          "kill=P: the same, with this probability, when the child asks for a checkpoint,\n"
          "which is then not persisted;\n"
          "seed=S (1): the same seed injects the same faults")
      ->type_name("FAULTS");
  command
      .add_flag("--expect", arguments.options.compares,
                "Compare each status and checkpoint with the recorded ones")
      ->excludes(parked);
  add_seconds(command, "--timeout", arguments.options.timeout,
              "How long a child may take for an action before it counts as hung", 1e6);
  add_option(command, "FILE.html", "--report", arguments.report,
             "Write a page with plots of each shard over time");
  add_option(command, "FILE", "--effects", arguments.effects,
             "Play without faults, then with them, and compare the lines that the child left in\n"
             "this file or directory. {dir}, in FILE and in the child's command, stands for an\n"
             "empty directory, which each of the two runs has of its own")
      ->excludes(parked);
  command.add_flag("--json", arguments.prints_json, "Print the summary as JSON");
}

}  // namespace

}  // namespace kclxx::replay

namespace kclxx {

void tool::add_replay_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"replay",
       "Plays the daemon's side of transcripts against a child, and reports what the child did.\n"
       "Exit status: 0 all is well, 1 the report has a finding, 3 the child failed, 4 bad "
       "transcript.",
       "kclxx replay captured/*.jsonl -- ./word_count counts\n"
       "  kclxx replay --parked again.jsonl -- ./my_processor\n"
       "  kclxx replay --faults throttle=0.1,shutdown-at=12,seed=7 shard0.jsonl -- ./word_count "
       "counts\n"
       "  kclxx replay --faults kill=0.2 --effects {dir}/shardId-000000000000.counts shard0.jsonl "
       "-- ./word_count {dir}"},
      child_use::required, run);
  auto arguments = std::make_shared<replay::replay_arguments>();
  replay::add_options(command, *arguments);
  command.callback([arguments, &run] {
    ::setenv(io::daemon_variable, io::no_daemon, 1);
    run.status = replay::run_replay(*arguments, run.child);
  });
}

}  // namespace kclxx
