// SPDX-License-Identifier: Apache-2.0
// A user's program for the end-to-end test of the metrics: its handler fails for some records, and
// it writes down, apart from kclxx's own count, what was delivered, tried and parked.
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <kclxx/kclxx.hpp>

#include "journal.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int attempts = 3;

std::string_view id_of(const kclxx::record& record) {
  return record.data().substr(0, record.data().find(' '));
}

/// How often the handler fails for a record: always the same, whoever processes it.
int failures_of(std::string_view id) {
  const int number = std::accumulate(id.begin(), id.end(), 0, [](int sum, char c) {
    return (sum * 31 + static_cast<unsigned char>(c)) % 9973;
  });
  if (number % 50 == 0) return attempts;  // for good
  return number % 10 == 0 ? 1 : 0;
}

class written_lot final : public kclxx::parking_lot {
 public:
  written_lot(std::filesystem::path directory, std::optional<journal>& into)
      : file_(std::move(directory)), journal_(into) {}
  void prepare(const kclxx::shard_context& shard) override { file_.prepare(shard); }
  void park(const kclxx::shard_context& shard, const kclxx::failed_record& failed) override {
    file_.park(shard, failed);
    const kclxx::record& one = failed.record;
    journal_
        ->line("parked", one.sequence_number(), one.sub_sequence_number(),
               one.partition_key().value_or("-"), id_of(one))
        .write();
  }

 private:
  kclxx::parking_file file_;
  std::optional<journal>& journal_;
};

/// Writes down what the processor inside is asked.
class accounted final : public kclxx::record_processor {
 public:
  accounted(std::unique_ptr<record_processor> inner, std::optional<journal>& into)
      : inner_(std::move(inner)), journal_(into) {}

  void initialize(const kclxx::shard_context& shard) override { inner_->initialize(shard); }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    std::uint64_t bytes = 0;
    for (const kclxx::record& one : batch) bytes += one.data().size();
    journal_->line("batch", std::uint64_t(batch.size()), bytes).write();
    inner_->process_records(std::move(batch), checkpointer);
  }
  void lease_lost() override {
    journal_->line("lease_lost").write();
    inner_->lease_lost();
  }
  void shard_ended(const kclxx::checkpointer& checkpointer) override {
    journal_->line("shard_ended").write();
    inner_->shard_ended(checkpointer);
  }
  void shutdown_requested(const kclxx::checkpointer& checkpointer) override {
    journal_->line("shutdown_requested").write();
    inner_->shutdown_requested(checkpointer);
  }

 private:
  std::unique_ptr<record_processor> inner_;
  std::optional<journal>& journal_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: accounted_child JOURNALS METRICS PARKED\n"
                 "Three directories; the text file is METRICS/PID/kclxx....prom, and stays.\n";
    return 2;
  }
  const std::filesystem::path journals = argv[1];
  const std::filesystem::path metrics = std::filesystem::path(argv[2]) / std::to_string(::getpid());
  std::filesystem::create_directory(metrics);
  std::optional<journal> of_shard;

  kclxx::run_options options;
  options.checkpoint_interval = 300ms;
  options.metrics.directory = metrics;
  options.metrics.write_interval = 200ms;
  options.metrics.remove_at_end = false;

  int tried = 0;  // the present record, so far
  std::string last;
  const auto handle = [&](const kclxx::record& record) {
    const std::string_view id = id_of(record);
    tried = last == record.sequence_number() ? tried + 1 : 1;
    last = record.sequence_number();
    const bool fails = tried <= failures_of(id);
    of_shard->line("attempt", record.sequence_number(), record.sub_sequence_number(),
                   std::uint64_t(tried), fails ? "failed" : "succeeded");
    if (!fails) {
      of_shard->line("record", record.sequence_number(), record.sub_sequence_number(),
                     record.partition_key().value_or("-"), id);
    }
    of_shard->write();
    if (fails) throw std::runtime_error("the handler fails for " + std::string(id));
  };
  const kclxx::processor_factory each =
      kclxx::each(handle, {.attempts = attempts,
                           .initial_backoff = 2ms,
                           .max_backoff = 5ms,
                           .exhausted = kclxx::exhausted::park,
                           .lot = std::make_shared<written_lot>(argv[3], of_shard)});
  const auto make = [&](const kclxx::shard_context& shard) {
    of_shard.emplace(journals, shard.shard_id());
    const auto& start = shard.start_position();
    of_shard
        ->line("initialize", shard.shard_id(), start ? start->sequence_number() : "null",
               start ? start->sub_sequence_number() : 0, shard.worker_id().value_or("-"),
               std::uint64_t(::getpid()))
        .line("parent", std::uint64_t(::getppid()))
        .write();
    return std::make_unique<accounted>(each(shard), of_shard);
  };
  const int status =
      kclxx::run(each.mode() ? kclxx::processor_factory(make, *each.mode()) : make, options);
  if (of_shard) of_shard->line("exit", std::uint64_t(status)).write();
  return status;
}
