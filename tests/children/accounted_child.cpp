// SPDX-License-Identifier: Apache-2.0
// A user's program for the end-to-end tests of failing records and of the metrics: it writes down,
// apart from kclxx's own count, what was delivered, tried, processed and parked.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
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

/// How often the handler fails for a record KEY-INDEX:NUMBER, the same in each child: of 100
/// records with numbers that follow one another, one always and five twice. harness/accounts.py has
/// the same.
int failures_of(std::string_view id) {
  const auto number = [&](char after) {
    return std::stoul(std::string(id.substr(id.rfind(after) + 1)));
  };
  const auto rest = (number('-') + number(':')) % 100;
  if (rest == 0) return attempts;  // for good
  return rest <= 5 ? 2 : 0;
}

/// The only record for which the handler fails, while a file with its id exists.
bool is_refused(std::string_view id) {
  std::string refused;
  std::ifstream("refused") >> refused;
  return refused == id;
}

/// The journal of the process's one shard, for several threads.
class shared_journal {
 public:
  void open(const std::filesystem::path& directory, const std::string& shard) {
    journal_.emplace(directory, shard);
  }
  /// Calls it with the journal, and writes what it has added.
  template <class Body>
  void write(Body body) {
    const std::lock_guard lock(mutex_);
    if (!journal_) return;
    body(*journal_);
    journal_->write();
  }
  template <class... Fields>
  void note(const Fields&... fields) {
    write([&](journal& into) { into.line(fields...); });
  }

 private:
  std::mutex mutex_;
  std::optional<journal> journal_;
};

class written_lot final : public kclxx::parking_lot {
 public:
  written_lot(std::filesystem::path directory, shared_journal& into)
      : file_(std::move(directory)), journal_(into) {}
  void prepare(const kclxx::shard_context& shard) override { file_.prepare(shard); }
  void park(const kclxx::shard_context& shard, const kclxx::failed_record& failed) override {
    file_.park(shard, failed);
    const kclxx::record& one = failed.record;
    journal_.note("parked", one.sequence_number(), one.sub_sequence_number(),
                  one.partition_key().value_or("-"), id_of(one));
  }

 private:
  kclxx::parking_file file_;
  shared_journal& journal_;
};

/// Writes down what the processor inside is asked.
class accounted final : public kclxx::record_processor {
 public:
  accounted(std::unique_ptr<record_processor> inner, shared_journal& into)
      : inner_(std::move(inner)), journal_(into) {}

  void initialize(const kclxx::shard_context& shard) override { inner_->initialize(shard); }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    std::uint64_t bytes = 0;
    for (const kclxx::record& one : batch) bytes += one.data().size();
    journal_.note("batch", std::uint64_t(batch.size()), bytes);
    inner_->process_records(std::move(batch), checkpointer);
  }
  void lease_lost() override {
    journal_.note("lease_lost");
    inner_->lease_lost();
  }
  void shard_ended(const kclxx::checkpointer& checkpointer) override {
    journal_.note("shard_ended");
    inner_->shard_ended(checkpointer);
  }
  void shutdown_requested(const kclxx::checkpointer& checkpointer) override {
    journal_.note("shutdown_requested");
    inner_->shutdown_requested(checkpointer);
  }

 private:
  std::unique_ptr<record_processor> inner_;
  shared_journal& journal_;
};

/// How often the present child has tried a record.
class tries {
 public:
  int count(const kclxx::record& one) {
    const std::lock_guard lock(mutex_);
    return ++counts_[one.position()];
  }

 private:
  std::mutex mutex_;
  std::map<kclxx::sequence_position, int> counts_;
};

kclxx::failure_policy policy_named(std::string_view name, std::shared_ptr<kclxx::parking_lot> lot) {
  if (name == "retry") return {.attempts = 0, .initial_backoff = 100ms, .max_backoff = 500ms};
  kclxx::failure_policy policy{.attempts = attempts, .initial_backoff = 2ms, .max_backoff = 5ms};
  if (name == "stop") return policy;
  policy.exhausted = kclxx::exhausted::park;
  policy.lot = std::move(lot);
  return policy;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr
        << "usage: accounted_child each|parallel park|retry|stop JOURNALS METRICS PARKED\n"
           "Three directories; the text file is METRICS/PID/kclxx....prom, and stays. With park,\n"
           "1 % of the records fail for good and 5 % twice; else that one whose id is in the file\n"
           "'refused'.\n";
    return 2;
  }
  const std::string_view form = argv[1];
  const std::string_view policy_name = argv[2];
  const std::filesystem::path journals = argv[3];
  const std::filesystem::path metrics = std::filesystem::path(argv[4]) / std::to_string(::getpid());
  std::filesystem::create_directory(metrics);
  shared_journal of_shard;

  kclxx::run_options options;
  options.checkpoint_interval = 300ms;
  options.metrics.directory = metrics;
  options.metrics.write_interval = 200ms;
  options.metrics.remove_at_end = false;

  tries tried;
  const auto handle = [&](const kclxx::record& record) {
    const std::string_view id = id_of(record);
    const int attempt = tried.count(record);
    const bool fails = policy_name == "park" ? attempt <= failures_of(id) : is_refused(id);
    if (form == "parallel") std::this_thread::sleep_for(std::chrono::milliseconds(attempt % 3));
    of_shard.write([&](journal& into) {
      into.line("attempt", record.sequence_number(), record.sub_sequence_number(),
                std::uint64_t(attempt), fails ? "failed" : "succeeded");
      if (fails) return;
      into.line("record", record.sequence_number(), record.sub_sequence_number(),
                record.partition_key().value_or("-"), id);
    });
    if (fails) throw std::runtime_error("the handler fails for " + std::string(id));
  };
  const kclxx::failure_policy policy =
      policy_named(policy_name, std::make_shared<written_lot>(argv[5], of_shard));
  const kclxx::processor_factory factory =
      form == "each" ? kclxx::each(handle, policy)
                     : kclxx::parallel(handle, policy, {.lanes = 8, .window_records = 200});
  const auto make = [&](const kclxx::shard_context& shard) {
    of_shard.open(journals, shard.shard_id());
    const auto& start = shard.start_position();
    of_shard.write([&](journal& into) {
      into.line("initialize", shard.shard_id(), start ? start->sequence_number() : "null",
                start ? start->sub_sequence_number() : 0, shard.worker_id().value_or("-"),
                std::uint64_t(::getpid()))
          .line("parent", std::uint64_t(::getppid()));
    });
    return std::make_unique<accounted>(factory(shard), of_shard);
  };
  const int status =
      kclxx::run(factory.mode() ? kclxx::processor_factory(make, *factory.mode()) : make, options);
  of_shard.note("exit", std::uint64_t(status));
  return status;
}
