// SPDX-License-Identifier: Apache-2.0
// A user's program for the end-to-end tests: it writes down all that the daemon asks of it.
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <kclxx/kclxx.hpp>

#include "journal.hpp"

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::string_view usage =
    "usage: recorded_child DIRECTORY [OPTION VALUE]...\n"
    "Writes a journal for each shard into DIRECTORY.\n"
    "  --checkpoint-every MS  checkpoint what was processed, and wait for the answer (500)\n"
    "  --automatic MS         leave checkpoints to kclxx, which makes them this often\n"
    "  --only ID              checkpoint the record with this id, and no other\n"
    "  --delay MICROSECONDS   so long does a record take (0)\n"
    "  --gather RECORDS       process so many at once, and fewer at the shutdown; with "
    "--automatic\n"
    "  --signs DIRECTORY      is stuck while it has the file stuck; once it has the file stop, "
    "the\n"
    "                         worker is asked to stop\n";

struct options {
  std::string directory;
  milliseconds checkpoint_every{500};
  std::optional<milliseconds> automatic;
  std::string only;
  microseconds delay{0};
  std::size_t gather = 0;
  std::string signs;
};

class recorded_processor : public kclxx::record_processor {
 public:
  recorded_processor(options chosen, journals& process_journals,
                     const kclxx::shard_context& context)
      : options_(std::move(chosen)),
        context_(context),
        journal_(process_journals.add(context.shard_id())) {
    const auto& start = context.start_position();
    journal_
        ->line("initialize", context.shard_id(), start ? start->sequence_number() : "null",
               start ? start->sub_sequence_number() : 0, context.worker_id().value_or("-"),
               std::uint64_t(::getpid()))
        .write();
    last_checkpoint_ = context.now();
    if (options_.gather == 0) return;
    const auto factory =
        kclxx::batches([this](const kclxx::record_batch& batch) { process(batch, *checkpointer_); },
                       {}, {.max_records = options_.gather, .linger = std::chrono::hours(1)});
    gathering_ = factory(context);
  }

  [[nodiscard]] kclxx::checkpoint_mode mode() const override {
    const bool is_automatic = options_.automatic && !gathering_;
    return is_automatic ? kclxx::checkpoint_mode::automatic : kclxx::checkpoint_mode::manual;
  }

  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    checkpointer_ = checkpointer;
    if (gathering_) return gathering_->process_records(std::move(batch), checkpointer);
    process(batch, checkpointer);
  }

  void lease_lost() override {
    journal_->line("lease_lost").write();
    if (gathering_) gathering_->lease_lost();
  }

  void shard_ended(const kclxx::checkpointer& checkpointer) override {
    journal_->line("shard_ended").write();
    if (gathering_) return gathering_->shard_ended(checkpointer);
    checkpointer.async_checkpoint();  // all is in the journal
  }

  void shutdown_requested(const kclxx::checkpointer& checkpointer) override {
    journal_->line("shutdown_requested").write();
    if (gathering_) return gathering_->shutdown_requested(checkpointer);
    checkpoint_all(checkpointer);
  }

 private:
  void process(const kclxx::record_batch& batch, const kclxx::checkpointer& checkpointer) {
    if (options_.delay.count() > 0) std::this_thread::sleep_for(options_.delay * batch.size());
    obey_signs();
    const kclxx::record* only = nullptr;
    for (const kclxx::record& record : batch) {
      const std::string_view id = record.data().substr(0, record.data().find(' '));
      journal_->line("record", record.sequence_number(), record.sub_sequence_number(),
                     record.partition_key().value_or("-"), id);
      if (!options_.only.empty() && id == options_.only) only = &record;
    }
    journal_->write();
    if (only != nullptr) checkpoint(checkpointer, only->position());
    if (!batch.empty()) last_ = batch.back().position();
    if (context_.now() - last_checkpoint_ >= options_.checkpoint_every) {
      checkpoint_all(checkpointer);
    }
  }

  void obey_signs() const {
    if (options_.signs.empty()) return;
    while (std::filesystem::exists(options_.signs + "/stuck")) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    if (std::filesystem::exists(options_.signs + "/stop")) context_.request_worker_stop();
  }

  void checkpoint_all(const kclxx::checkpointer& checkpointer) {
    if (options_.automatic || !options_.only.empty() || !last_) return;
    checkpoint(checkpointer, *last_);
    last_.reset();
    last_checkpoint_ = context_.now();
  }

  void checkpoint(const kclxx::checkpointer& checkpointer,
                  const kclxx::sequence_position& position) {
    try {
      checkpointer.checkpoint(position);
      journal_->line("checkpointed", position.sequence_number(), position.sub_sequence_number())
          .write();
    } catch (const kclxx::checkpoint_error& error) {  // delivered again after a restart
      journal_
          ->line("refused", position.sequence_number(), position.sub_sequence_number(),
                 error.name().empty() ? error.code().message() : std::string(error.name()))
          .write();
    }
  }

  options options_;
  const kclxx::shard_context& context_;
  std::unique_ptr<journal> journal_;
  std::optional<kclxx::checkpointer> checkpointer_;  // that callbacks get
  std::optional<kclxx::sequence_position> last_;
  kclxx::shard_context::clock::time_point last_checkpoint_;
  std::unique_ptr<kclxx::record_processor> gathering_;
};

std::optional<options> parse(int argc, char** argv) {
  if (argc % 2 != 0) return std::nullopt;
  options result;
  result.directory = argv[1];
  for (int i = 2; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--only" || name == "--signs") {
      (name == "--only" ? result.only : result.signs) = value;
      continue;
    }
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      return std::nullopt;
    if (name == "--checkpoint-every") {
      result.checkpoint_every = milliseconds(number);
    } else if (name == "--automatic") {
      result.automatic = milliseconds(number);
    } else if (name == "--gather") {
      result.gather = static_cast<std::size_t>(number);
    } else if (name == "--delay") {
      result.delay = microseconds(number);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const auto chosen = parse(argc, argv);
  if (!chosen) {
    std::cerr << usage;
    return 2;
  }
  kclxx::run_options run_options;
  if (chosen->automatic) run_options.checkpoint_interval = *chosen->automatic;
  journals process_journals(chosen->directory);
  const int status = kclxx::run(
      [&](const kclxx::shard_context& shard) {
        return std::make_unique<recorded_processor>(*chosen, process_journals, shard);
      },
      run_options);
  process_journals.write_exit(status);
  return status;
}
