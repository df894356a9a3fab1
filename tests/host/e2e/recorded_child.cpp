// SPDX-License-Identifier: Apache-2.0
// A user's program for the end-to-end tests: it writes down all that the daemon asks of it.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include <CLI/CLI.hpp>

#include <kclxx/kclxx.hpp>

#include "journal.hpp"

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

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

}  // namespace

int main(int argc, char** argv) {
  options chosen;
  CLI::App app("Writes a journal for each shard into DIRECTORY.");
  const auto number = [&app](const char* name, auto& value, const char* text) {
    app.add_option_function<std::uint32_t>(
        name, [&value](std::uint32_t parsed) { value = std::decay_t<decltype(value)>(parsed); },
        text);
  };
  app.add_option("DIRECTORY", chosen.directory)->required();
  number("--checkpoint-every", chosen.checkpoint_every,
         "Checkpoint what was processed so often, in milliseconds, and wait for the answer  [500]");
  number("--automatic", chosen.automatic,
         "Leave checkpoints to kclxx, which makes them so often, in milliseconds");
  app.add_option("--only", chosen.only, "Checkpoint the record with this id, and no other");
  number("--delay", chosen.delay, "So many microseconds does a record take  [0]");
  number("--gather", chosen.gather,
         "Process so many records at once, and fewer at the shutdown; with --automatic");
  app.add_option(
      "--signs", chosen.signs,
      "A directory: is stuck while it has the file stuck; once it has the file stop, the "
      "worker is asked to stop");
  CLI11_PARSE(app, argc, argv);
  kclxx::run_options run_options;
  if (chosen.automatic) run_options.checkpoint_interval = *chosen.automatic;
  journals process_journals(chosen.directory);
  const int status = kclxx::run(
      [&](const kclxx::shard_context& shard) {
        return std::make_unique<recorded_processor>(chosen, process_journals, shard);
      },
      run_options);
  process_journals.write_exit(status);
  return status;
}
