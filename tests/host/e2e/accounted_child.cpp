// SPDX-License-Identifier: Apache-2.0
// A user's program for the end-to-end tests of failing records and of the metrics: it writes down,
// apart from kclxx's own count, what was delivered, tried, processed and parked.
#include <chrono>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

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
  const auto remainder = (number('-') + number(':')) % 100;
  if (remainder == 0) return attempts;  // for good
  return remainder <= 5 ? 2 : 0;
}

/// A shard's journal, for several threads.
class shared_journal {
 public:
  explicit shared_journal(std::unique_ptr<journal> journal) : journal_(std::move(journal)) {}
  /// Calls it with the journal, and writes what it has added.
  template <class Body>
  void write(Body body) {
    const std::lock_guard lock(mutex_);
    body(*journal_);
    journal_->write();
  }
  template <class... Fields>
  void note(const Fields&... fields) {
    write([&](journal& journal) { journal.line(fields...); });
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<journal> journal_;
};

class written_lot final : public kclxx::parking_lot {
 public:
  written_lot(std::filesystem::path directory, std::shared_ptr<shared_journal> journal)
      : file_(std::move(directory)), journal_(std::move(journal)) {}
  void prepare(const kclxx::shard_context& shard) override { file_.prepare(shard); }
  void park(const kclxx::shard_context& shard,
            std::span<const kclxx::failed_record> failed) override {
    try {
      file_.park(shard, failed);
    } catch (const std::exception&) {  // a paused process has the file locked: they are tried again
      for (std::size_t i = 0; i < failed.size(); ++i) journal_->note("not_parked");
      throw;
    }
    for (const kclxx::failed_record& entry : failed) {
      const kclxx::record& record = entry.record;
      journal_->note("parked", record.sequence_number(), record.sub_sequence_number(),
                     record.partition_key().value_or("-"), id_of(record));
    }
  }

 private:
  kclxx::parking_file file_;
  std::shared_ptr<shared_journal> journal_;
};

/// Writes down what the processor inside is asked.
class accounted final : public kclxx::record_processor {
 public:
  accounted(std::unique_ptr<record_processor> inner, std::shared_ptr<shared_journal> journal)
      : inner_(std::move(inner)), journal_(std::move(journal)) {}

  [[nodiscard]] kclxx::checkpoint_mode mode() const override { return inner_->mode(); }
  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    inner_->process_records(std::move(batch), checkpointer);
  }
  void lease_lost() override {
    journal_->note("lease_lost");
    inner_->lease_lost();
  }
  void shard_ended(const kclxx::checkpointer& checkpointer) override {
    journal_->note("shard_ended");
    inner_->shard_ended(checkpointer);
  }
  void shutdown_requested(const kclxx::checkpointer& checkpointer) override {
    journal_->note("shutdown_requested");
    inner_->shutdown_requested(checkpointer);
  }

 private:
  std::unique_ptr<record_processor> inner_;
  std::shared_ptr<shared_journal> journal_;
};

/// How often a shard's records were tried that are not done.
class tries {
 public:
  int next(const kclxx::record& record) {
    const std::lock_guard lock(mutex_);
    return ++counts_[record.position()];
  }
  void forget(const kclxx::record& record) {
    const std::lock_guard lock(mutex_);
    counts_.erase(record.position());
  }

 private:
  std::mutex mutex_;
  std::map<kclxx::sequence_position, int> counts_;
};

/// Names the records for which the function throws, and leaves out the later ones of their keys.
template <class Function>
auto for_each(Function function) {
  return [function](const kclxx::record_batch& batch) {
    std::vector<kclxx::batch_failure::failed> failed;
    std::set<std::string_view> keys;
    for (const kclxx::record& record : batch) {
      const std::string_view key = record.partition_key().value_or("-");
      if (keys.contains(key)) continue;
      try {
        function(record);
      } catch (const std::exception&) {
        failed.push_back({record.position(), std::current_exception()});
        keys.insert(key);
      }
    }
    if (!failed.empty()) throw kclxx::batch_failure(std::move(failed));
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr
        << "usage: accounted_child each|gathering|parallel JOURNALS METRICS PARKED\n"
           "Three directories; the text file is METRICS/PID/kclxx....prom, and stays. 1 % of\n"
           "the records fail for good, and 5 % twice.\n";
    return 2;
  }
  const std::string_view form = argv[1];
  journals process_journals(argv[2]);
  const std::filesystem::path metrics = std::filesystem::path(argv[3]) / std::to_string(::getpid());
  const std::filesystem::path parked = argv[4];
  std::filesystem::create_directory(metrics);

  kclxx::run_options options;
  options.checkpoint_interval = 300ms;
  options.metrics.directory = metrics;
  options.metrics.write_interval = 200ms;
  options.metrics.remove_at_end = false;

  const auto make = [&](const kclxx::shard_context& shard) {
    const auto of_shard = std::make_shared<shared_journal>(process_journals.add(shard.shard_id()));
    const auto& start = shard.start_position();
    of_shard->write([&](journal& journal) {
      journal.line("initialize", shard.shard_id(), start ? start->sequence_number() : "null",
                   start ? start->sub_sequence_number() : 0, shard.worker_id().value_or("-"),
                   std::uint64_t(::getpid()));
    });
    const auto handle = [of_shard, tried = std::make_shared<tries>(),
                         form](const kclxx::record& record) {
      const std::string_view id = id_of(record);
      const int attempt = tried->next(record);
      const bool fails = attempt <= failures_of(id) || failures_of(id) == attempts;
      if (!fails) tried->forget(record);
      if (form == "parallel") std::this_thread::sleep_for(std::chrono::milliseconds(attempt % 3));
      of_shard->write([&](journal& journal) {
        journal.line("attempt", std::uint64_t(attempt), fails ? "failed" : "succeeded");
        if (fails) return;
        journal.line("record", record.sequence_number(), record.sub_sequence_number(),
                     record.partition_key().value_or("-"), id);
      });
      if (fails) throw std::runtime_error("the handler fails for " + std::string(id));
    };
    kclxx::failure_policy policy{.max_attempts = attempts,
                                 .initial_backoff = 2ms,
                                 .max_backoff = 5ms,
                                 .bad_record = kclxx::bad_record::park,
                                 .lot = std::make_shared<written_lot>(parked, of_shard)};
    policy.breaker.reset();  // bad records can follow on each other
    const kclxx::processor_factory factory = [&] {
      if (form == "each") return kclxx::each(handle, policy);
      if (form == "gathering") {
        return kclxx::batches(for_each(handle), policy,
                              {.max_records = 100, .linger = 500ms, .order = kclxx::order::key});
      }
      return kclxx::parallel(handle, policy, {.lanes = 8, .window_records = 200});
    }();
    return std::make_unique<accounted>(factory(shard), of_shard);
  };
  const int status = kclxx::run(make, options);
  process_journals.write_exit(status);
  return status;
}
