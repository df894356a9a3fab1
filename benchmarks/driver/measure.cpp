// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <regex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <thread>

#include <kclxx/record.hpp>

#include "daemon_model/lines.hpp"
#include "measured_child.hpp"

namespace bench {
namespace {

// Sequence numbers have 56 digits, as Kinesis': these, eight of the batch, eight of the record.
constexpr std::string_view sequence_prefix = "4959033827149025660855969253836157109592";
constexpr std::size_t counter_digits = 8;
constexpr std::size_t page = 4096;

std::string digits(std::uint64_t number) {
  std::string text = std::to_string(number);
  return text.insert(0, counter_digits - text.size(), '0');
}

std::string random_bytes(std::size_t count, std::mt19937& random) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// The texts that a record's fields are views of.
struct record_texts {
  std::string data, partition_key, sequence_number;
};

std::string first_line(std::size_t records, std::size_t bytes) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same data in every run
  std::vector<record_texts> texts;
  for (std::size_t i = 0; i < records; ++i) {
    texts.push_back({random_bytes(bytes, random), "key-" + digits(random() % 100'000),
                     std::string(sequence_prefix) + digits(0) + digits(i)});
  }
  std::vector<kclxx::record> batch;
  for (const record_texts& record : texts) {
    kclxx::record::fields fields;
    fields.data = record.data;
    fields.partition_key = record.partition_key;
    fields.sequence_number = record.sequence_number;
    fields.approximate_arrival_timestamp = std::chrono::milliseconds(1'763'700'000'000);
    batch.emplace_back(fields);
  }
  return kclxx::daemon_model::process_records_line(batch, 0) + '\n';
}

using clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::string_view initialize =
    "{\"action\":\"initialize\",\"shardId\":\"shardId-000000000000\","
    "\"sequenceNumber\":\"TRIM_HORIZON\",\"subSequenceNumber\":0}\n";
constexpr std::string_view lease_lost = "{\"action\":\"leaseLost\"}\n";

double seconds(clock::duration time) { return std::chrono::duration<double>(time).count(); }

double total(const rusage& usage) {
  const auto in_seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return in_seconds(usage.ru_utime) + in_seconds(usage.ru_stime);
}

/// In microseconds.
json percentiles(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return 1e6 *
           times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  return {{"p10", at(0.1)}, {"p50", at(0.5)}, {"p99", at(0.99)}};
}

/// Checks that the processor has decoded as many bytes as it was sent, as it reports at its end.
void check_decoded(const job& job, const std::string& errors, std::uint64_t sent) {
  if (!job.decodes) return;
  static const std::regex report("(^|\n)([0-9]+) bytes(?=\n)");
  std::sregex_iterator match(errors.begin(), errors.end(), report);
  if (match == std::sregex_iterator()) {
    throw std::runtime_error("the child did not report what it decoded");
  }
  std::uint64_t decoded = 0;  // all shards of a process report to the same stderr
  for (; match != std::sregex_iterator(); ++match) decoded += std::stoull((*match)[2]);
  if (decoded != sent) {
    throw std::runtime_error("the child decoded " + std::to_string(decoded) + " bytes of " +
                             std::to_string(sent));
  }
}

// The clients write spaces and fields in different ways, so the driver looks for words alone.
bool has(std::string_view line, std::string_view word) {
  return line.find(word) != std::string_view::npos;
}

[[noreturn]] void unexpected(std::string_view line, std::string_view name) {
  throw std::runtime_error("in " + std::string(name) + " the child wrote: " + std::string(line));
}

/// Plays the daemon's side: it writes an action, and reads the child's lines until the status. Each
/// checkpoint is answered with success.
class lockstep {
 public:
  explicit lockstep(measured_child& child) : child_(child) {}

  /// Sends `line` (with its newline) and returns when the child has answered action `name`. A
  /// checkpoint may only be at `position`, or null if that is empty: a child that checkpoints
  /// anything else has not processed the batch. Errors: std::runtime_error with what the child has
  /// sent.
  void exchange(std::string_view name, std::string_view line, std::string_view position = {});

  [[nodiscard]] std::uint64_t checkpoints() const noexcept { return checkpoints_; }

 private:
  void answer_checkpoint(std::string_view position);

  measured_child& child_;
  std::uint64_t checkpoints_ = 0;
};

void lockstep::exchange(std::string_view name, std::string_view line, std::string_view position) {
  child_.write(line);
  while (true) {
    const std::string_view reply = child_.read_line();
    if (has(reply, R"("status")")) {
      if (!has(reply, name)) unexpected(reply, name);
      return;
    }
    if (!has(reply, R"("checkpoint")")) unexpected(reply, name);
    if (!has(reply, position.empty() ? "null" : position)) unexpected(reply, name);
    answer_checkpoint(position);
  }
}

void lockstep::answer_checkpoint(std::string_view position) {
  ++checkpoints_;
  std::string text = R"({"action":"checkpoint","sequenceNumber":)";
  if (position.empty()) {
    text += "null,\"subSequenceNumber\":null,\"error\":null}\n";
  } else {
    text += '"';
    text += position;
    text += "\",\"subSequenceNumber\":0,\"error\":null}\n";
  }
  child_.write(text);
}

class batches {
 public:
  batches(measured_child& child, const job& job) : daemon_(child), line_(job.records, job.bytes) {}

  /// The seconds of each round trip. There are at least five, which take `duration` seconds.
  std::vector<double> run(double duration) {
    std::vector<double> trips;
    for (double sum = 0; sum < duration || trips.size() < 5; sum += trips.back()) {
      trips.push_back(send());
    }
    return trips;
  }

  /// Makes one round trip, and returns its seconds. Errors: std::runtime_error when the child did
  /// not checkpoint the batch.
  double send() {
    line_.renumber(++sent_);  // not part of the round trip
    const std::uint64_t checkpoints = daemon_.checkpoints();
    const auto begin = clock::now();
    daemon_.exchange("processRecords", line_.text(), line_.last_sequence_number());
    const double took = seconds(clock::now() - begin);
    if (daemon_.checkpoints() == checkpoints) {
      throw std::runtime_error("the child did not checkpoint a batch");
    }
    return took;
  }

  lockstep& daemon() { return daemon_; }
  [[nodiscard]] const batch_line& line() const { return line_; }
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

 private:
  lockstep daemon_;
  batch_line line_;
  std::uint64_t sent_ = 0;
};

/// Sends small batches, as on a shard where little happens, until the client has had time to give
/// memory back. Returns the bytes that it has then.
std::size_t settle(measured_child& client, lockstep& daemon, const job& job, std::uint64_t first,
                   std::uint64_t& payload) {
  using namespace std::chrono_literals;
  batch_line small(1, 100);
  const auto end = clock::now() + std::chrono::duration<double>(job.settle_seconds);
  while (clock::now() < end) {
    small.renumber(++first);
    daemon.exchange("processRecords", small.text(), small.last_sequence_number());
    payload += small.payload();
    std::this_thread::sleep_for(100ms);
  }
  return client.memory("VmRSS");
}

/// A shard, and the results of its thread.
struct shard {
  shard(const job& job, const std::vector<std::string>& command)
      : client(command, job.child_cpu), work(client, job) {}
  void run(double duration) {
    try {
      trips = work.run(duration);
    } catch (const std::exception& error) {
      failure = error.what();
    }
  }

  measured_child client;
  batches work;
  std::vector<double> trips;
  std::string failure;
};
using shards = std::vector<std::unique_ptr<shard>>;

json held_by(const shards& shards) {
  std::size_t own_bytes = 0;
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  for (const auto& shard : shards) {
    own_bytes += shard->client.memory("RssAnon");
    threads += shard->client.threads();
    descriptors += shard->client.descriptors();
  }
  return {{"own_bytes", own_bytes}, {"threads", threads}, {"descriptors", descriptors}};
}

double cpu_seconds_of(const shards& shards) {
  double sum = 0;
  for (const auto& shard : shards) sum += shard->client.cpu_seconds();
  return sum;
}

/// Raises the limit on descriptors: the driver needs three for each child.
void allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

batch_line::batch_line(std::size_t records, std::size_t bytes) : payload_(records * bytes) {
  const std::string text = first_line(records, bytes);
  for (std::size_t at = 0; (at = text.find(sequence_prefix, at)) != std::string::npos;) {
    at += sequence_prefix.size();
    batch_digits_.push_back(at);
  }
  size_ = text.size();
  text_.reset(static_cast<char*>(std::aligned_alloc(page, (size_ + page - 1) / page * page)));
  if (!text_) throw std::bad_alloc();
  text.copy(text_.get(), size_);
}

void batch_line::renumber(std::uint64_t batch) {
  const std::string text = digits(batch);
  for (const std::size_t at : batch_digits_)
    std::memcpy(text_.get() + at, text.data(), text.size());
}

std::string_view batch_line::last_sequence_number() const noexcept {
  if (batch_digits_.empty()) return {};
  return text().substr(batch_digits_.back() - sequence_prefix.size(),
                       sequence_prefix.size() + 2 * counter_digits);
}

job job::parse(const std::string& text) {
  job result;
  const std::map<std::string, std::function<void(const json&)>> keys{
      {"records", [&](const json& value) { result.records = value; }},
      {"bytes", [&](const json& value) { result.bytes = value; }},
      {"seconds", [&](const json& value) { result.seconds = value; }},
      {"starts", [&](const json& value) { result.starts = value; }},
      {"shards", [&](const json& value) { result.shards = value; }},
      {"batches", [&](const json& value) { result.batches = value; }},
      {"decodes", [&](const json& value) { result.decodes = value; }},
      {"settle_seconds", [&](const json& value) { result.settle_seconds = value; }},
      {"driver_cpu", [&](const json& value) { result.driver_cpu = value.get<int>(); }},
      {"child_cpu", [&](const json& value) { result.child_cpu = value.get<int>(); }}};
  const json given = json::parse(text);
  for (const auto& [key, value] : given.items()) {
    const auto found = keys.find(key);
    if (found == keys.end()) throw std::invalid_argument("unknown key '" + key + "' in the job");
    found->second(value);
  }
  return result;
}

json measure_batches(const job& job, const std::vector<std::string>& command) {
  measured_child client(command, job.child_cpu);
  batches work(client, job);
  work.daemon().exchange("initialize", initialize);
  work.run(job.seconds / 3);

  const std::uint64_t checkpoints = work.daemon().checkpoints();
  const double cpu = client.cpu_seconds();
  const std::vector<double> trips = work.run(job.seconds);
  json result;
  result["cpu_seconds"] = client.cpu_seconds() - cpu;
  result["checkpoints"] = work.daemon().checkpoints() - checkpoints;
  double sum = 0;
  for (const double trip : trips) sum += trip;
  result["seconds"] = sum;
  result["batches"] = trips.size();
  result["records"] = trips.size() * work.line().records();
  result["bytes"] = trips.size() * work.line().payload();
  result["line_bytes"] = work.line().text().size();
  result["round_trip_us"] = percentiles(trips);
  result["peak_bytes"] = client.memory("VmHWM");

  std::uint64_t payload = work.sent() * work.line().payload();
  if (job.settle_seconds > 0) {
    result["settled_bytes"] = settle(client, work.daemon(), job, work.sent(), payload);
  }
  work.daemon().exchange("leaseLost", lease_lost);
  const measured_child::ending end = client.wait();
  result["exit_status"] = end.status;
  check_decoded(job, end.errors, payload);
  return result;
}

json play_batches(const job& job, const std::vector<std::string>& command) {
  measured_child client(command, job.child_cpu);
  client.wait_for_reads();
  batches work(client, job);
  client.wait_until_idle();  // else the order of its threads would differ from run to run
  work.daemon().exchange("initialize", initialize);
  client.wait_until_idle();
  for (std::size_t i = 0; i < job.batches; ++i) work.send();
  client.wait_until_idle();
  work.daemon().exchange("leaseLost", lease_lost);
  const measured_child::ending end = client.wait();
  check_decoded(job, end.errors, work.sent() * work.line().payload());
  if (end.status != 0) {
    throw std::runtime_error("the child ended with " + std::to_string(end.status) + ": " +
                             end.errors);
  }
  return {{"checkpoints", work.daemon().checkpoints()}};
}

json measure_starts(const job& job, const std::vector<std::string>& command) {
  std::vector<double> times;
  std::vector<double> cpu;
  std::vector<std::size_t> idle;
  std::vector<std::size_t> own;  // without the pages of files, which all processes share
  for (std::size_t i = 0; i < job.starts; ++i) {
    const auto begin = clock::now();
    measured_child client(command, job.child_cpu);
    lockstep daemon(client);
    daemon.exchange("initialize", initialize);
    times.push_back(seconds(clock::now() - begin));
    idle.push_back(client.memory("VmRSS"));
    own.push_back(client.memory("RssAnon"));
    daemon.exchange("leaseLost", lease_lost);
    cpu.push_back(total(client.wait().usage));
  }
  std::sort(idle.begin(), idle.end());
  std::sort(own.begin(), own.end());
  std::sort(cpu.begin(), cpu.end());
  return {{"starts", job.starts},
          {"start_us", percentiles(times)},
          {"life_cpu_seconds", cpu[cpu.size() / 2]},
          {"idle_bytes", idle[idle.size() / 2]},
          {"own_bytes", own[own.size() / 2]}};
}

json measure_shards(const job& job, const std::vector<std::string>& command) {
  allow_descriptors();
  shards clients;
  for (std::size_t i = 0; i < job.shards; ++i) {
    clients.push_back(std::make_unique<shard>(job, command));
    clients.back()->work.daemon().exchange("initialize", initialize);
  }
  json result;
  result["shards"] = job.shards;
  result["idle"] = held_by(clients);

  const double cpu = cpu_seconds_of(clients);
  const auto begin = clock::now();
  {
    std::vector<std::jthread> daemons;
    daemons.reserve(clients.size());
    for (const auto& shard : clients) {
      daemons.emplace_back([&shard, duration = job.seconds] { shard->run(duration); });
    }
  }
  result["seconds"] = seconds(clock::now() - begin);
  result["cpu_seconds"] = cpu_seconds_of(clients) - cpu;
  result["busy"] = held_by(clients);

  std::vector<double> trips;
  std::string errors;
  std::uint64_t payload = 0;
  for (const auto& shard : clients) {
    if (!shard->failure.empty()) throw std::runtime_error(shard->failure);
    trips.insert(trips.end(), shard->trips.begin(), shard->trips.end());
    payload += shard->work.sent() * shard->work.line().payload();
    shard->work.daemon().exchange("leaseLost", lease_lost);
    errors += shard->client.wait().errors;
  }
  check_decoded(job, errors, payload);
  result["batches"] = trips.size();
  result["records"] = trips.size() * job.records;
  result["bytes"] = payload;
  result["round_trip_us"] = percentiles(std::move(trips));
  return result;
}

}  // namespace bench
