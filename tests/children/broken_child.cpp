// SPDX-License-Identifier: Apache-2.0
// A small child that keeps every rule of `kclxx check`. With --break WAY it breaks the rule of that
// name, or the rule that check_test.cpp has for it. With --fault NAME it has a mistake that an
// author could make, or a habit, whatever rules that breaks. It is written without kclxx, since the
// library must not be its own judge.
//
// It persists every second batch, leaves at records with the data "poison", and prints at "print".
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <iostream>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "protocol/json_string.hpp"

namespace {

using json = nlohmann::json;

bool is_null(const json& object, const char* field) {
  return object.value(field, json(0)).is_null();
}

bool is_larger_than_2_mib(const json& record) {
  const json data = record.value("data", json());
  return data.is_string() && data.get_ref<const std::string&>().size() > 2'800'000;
}

/// The line for a strict parser: bytes that are not UTF-8, and half surrogate pairs, are replaced.
std::string valid_text(std::string_view line) {
  std::string text = kclxx::protocol::replace_invalid_utf8(line);
  const std::string_view high = R"(\ud8)";
  for (auto at = text.find(high); at != std::string::npos; at = text.find(high, at + 1)) {
    const bool is_pair = text.compare(at + 6, 3, R"(\ud)") == 0;
    if (!is_pair) text.replace(at, 6, R"(\ufffd)");
  }
  return text;
}

/// Whether a child that breaks this rule cannot take this line: it leaves without a status.
bool trips_over(std::string_view rule, const json& message, std::string_view line,
                bool is_after_shutdown_requested) {
  static const json none = json::array();
  const auto found = message.find("records");
  const json& records = found == message.end() ? none : *found;
  const auto is = [&](std::string_view action) { return message.at("action") == action; };
  const auto is_shutdown = [&](std::string_view reason) {
    return is("shutdown") && message.at("reason") == reason;
  };
  const auto any_record = [&](const auto& holds) {
    return std::any_of(records.begin(), records.end(), holds);
  };
  const auto any_null = [&](const char* field) {
    return any_record([&](const json& record) { return is_null(record, field); });
  };
  const auto has = [&](std::string_view text) { return line.find(text) != line.npos; };
  const json behind = message.value("millisBehindLatest", json(0));

  if (rule == "initialize") return is("initialize");
  if (rule == "initial-positions") return message.value("sequenceNumber", json()) == "LATEST";
  if (rule == "one-record") return records.size() == 1;
  if (rule == "empty-batch") return is("processRecords") && records.empty();
  if (rule == "many-records") return records.size() > 1000;
  if (rule == "long-line") return line.size() > 10'000'000;
  if (rule == "large-record") return any_record(is_larger_than_2_mib);
  if (rule == "aggregated-records") {
    return any_record([](const json& record) { return record.value("subSequenceNumber", 0) > 0; });
  }
  if (rule == "long-line-in-pieces") return line.size() > 50'000 && has("\u30ad");
  if (rule == "empty-data") {
    return any_record([](const json& record) { return record.value("data", json()) == ""; });
  }
  if (rule == "line-separators") return has("\u2028");
  if (rule == "long-lag") return behind.is_number() && behind > std::int64_t{1} << 31;
  if (rule == "unknown-fields-in-ending") return message.contains("checkpoint");
  if (rule == "shutdown-requested") return is("shutdownRequested");
  if (rule == "lease-lost") return is("leaseLost");
  if (rule == "shard-ended") return is("shardEnded");
  if (rule == "hand-off") return is_after_shutdown_requested;
  if (rule == "old-terminate") return is_shutdown("TERMINATE");
  if (rule == "old-shard-end") return is_shutdown("SHARD_END");
  if (rule == "old-zombie") return is_shutdown("ZOMBIE");
  if (rule == "old-lease-lost") return is_shutdown("LEASE_LOST");
  if (rule == "unknown-action-goes-on") return has("tomorrowsAction");
  if (rule == "null-position") return is("initialize") && message.at("sequenceNumber").is_null();
  if (rule == "null-data") return any_null("data");
  if (rule == "null-partition-key") return any_null("partitionKey");
  if (rule == "null-arrival-time") return any_null("approximateArrivalTimestamp");
  if (rule == "null-millis-behind") return behind.is_null();
  if (rule == "missing-fields") {
    return is("processRecords") && !message.contains("millisBehindLatest");
  }
  if (rule == "floating-point-times") return behind.is_number_float();
  if (rule == "unknown-fields") return message.contains("tomorrow");
  if (rule == "unknown-objects") return message.value("pendingCheckpoint", json()).is_object();
  if (rule == "field-order") return !line.starts_with("{\"action\"");
  if (rule == "escaped-text") return has("\\u00e9");
  if (rule == "non-ascii-text") return has("\u30ad");
  if (rule == "invalid-utf8") return valid_text(line) != line;
  return false;
}

std::string broken_rule;
bool broken(std::string_view way) { return broken_rule == way; }

std::string its_fault;
bool has_fault(std::string_view name) { return its_fault == name; }

[[noreturn]] void hang() {
  for (;;) ::pause();
}

volatile std::sig_atomic_t was_terminated = 0;

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal_number, &action, nullptr);
}

void outlive(int signal_number) {
  handle(signal_number, [](int which) { was_terminated = which == SIGTERM ? 1 : was_terminated; });
}

/// Takes a name until the end of this process. False: another process has it.
bool take_name(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // no file: an abstract name
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Makes the file. False: it existed, and is removed.
bool make_lock_file(const std::string& name) {
  const int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) ::unlink(name.c_str());
  return fd >= 0;
}

constexpr std::string_view poison = "cG9pc29u";
constexpr std::string_view print = "cHJpbnQ=";
constexpr std::string_view json_text = "eyJ";  // how {" begins

/// Whether a processor that reads JSON understands the data.
bool is_understood(const json& data) {
  return data.is_null() || data == "" || data == poison || data == print ||
         data.get_ref<const std::string&>().starts_with(json_text);
}

class broken_child {
 public:
  int run() {
    std::string line;
    while (read_line(line)) {
      if (std::cin.eof()) break;  // no newline: the line is not whole
      was_called_ = true;
      const json message = json::parse(valid_text(line), nullptr, false);
      if (message.is_discarded()) {
        if (broken("malformed-line")) continue;
        return 1;
      }
      const std::string cannot_take =
          has_fault("records up to 2 MiB") ? "large-record" : broken_rule;
      if (trips_over(cannot_take, message, line, was_asked_to_shut_down_)) return 1;
      if (!act(message)) return 1;
    }
    at_end_of_input(!line.empty());
    return broken("exit-status") ? 1 : 0;
  }

 private:
  /// Takes the bytes that are there for a whole line.
  static void read_only_what_there_is() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    ::poll(&input, 1, -1);
    ::fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
  }

  static bool read_line(std::string& line) {
    if (broken("line-in-pieces")) read_only_what_there_is();
    if (!has_fault("buffer of 64 KiB")) return static_cast<bool>(std::getline(std::cin, line));
    line.clear();
    for (int c = 0; line.size() < (1 << 16) && (c = std::cin.get()) != '\n';) {
      if (c == EOF) return false;
      line += static_cast<char>(c);
    }
    return true;
  }

  void at_end_of_input(bool is_in_a_line) const {
    if (broken("end-of-input") && was_called_ && !is_ended_) hang();
    if (broken("end-of-input-at-start") && !was_called_) hang();
    if (broken("end-of-input-after-ending") && is_ended_) hang();
    if (broken("end-of-input-in-line") && is_in_a_line) hang();
  }

  void write(const std::string& text) const {
    if (!broken("newline-before") && !broken("stray-print")) std::fputc('\n', stdout);
    std::fputs(text.c_str(), stdout);
    if (!broken("lines-complete")) std::fputc('\n', stdout);
    std::fflush(stdout);
  }

  void status(const std::string& action) {
    if (broken("null-line")) write("null");
    if (broken("only-messages")) write("done with " + action);
    if (broken("exact-fields")) write(R"({"action":"status","responseFor":"a","took":3})");
    const std::string line = R"({"action":"status","responseFor":")" + action + "\"}";
    write(line);
    if (broken("one-status")) write(line);
    if (action != "processRecords") return;
    if (broken("nothing-between")) write(checkpoint_line({}, {}));
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (broken("timer-between") && ::poll(&input, 1, 500) == 0) write(checkpoint_line({}, {}));
    if (broken("sigterm-in-action")) outlive(SIGTERM);
  }

  static std::string checkpoint_line(const json& sequence, const json& sub) {
    return R"({"action":"checkpoint","sequenceNumber":)" + sequence.dump() +
           R"(,"subSequenceNumber":)" + sub.dump() + "}";
  }

  /// Asks for a checkpoint, and waits for the answer. Returns the error's name; empty: it
  /// succeeded.
  std::string ask(const json& sequence, const json& sub) {
    write(checkpoint_line(sequence, sub));
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (broken("answer-late") && ::poll(&input, 1, 500) == 0) std::exit(1);
    if (broken("answer-in-pieces")) read_only_what_there_is();
    std::string line;
    if (!std::getline(std::cin, line)) {
      if (broken("end-of-input-in-action") || broken("end-of-input-unanswered") ||
          broken("end-of-input-while-retrying") || broken("daemon-dies")) {
        hang();
      }
      std::exit(1);
    }
    if (broken("answer-in-pieces"))
      ::fcntl(STDIN_FILENO, F_SETFL, 0);  // the next line is read whole
    if (broken("unknown-fields-in-answer") && line.find("tomorrow") != std::string::npos) {
      std::exit(1);
    }
    const json error = json::parse(line).at("error");
    return error.is_null() ? "" : error.get<std::string>();
  }

  /// Asks for a checkpoint until it succeeds, or cannot. Returns the last error.
  std::string persist(const json& sequence, const json& sub, bool again = true) {
    if (broken("checkpoint-after-named-start") && start_ == "LATEST") return "";
    if (lease_is_gone_ && !broken("no-checkpoint-after-lease-is-gone")) return "ShutdownException";
    for (int tries = 0;; ++tries) {
      std::string error = ask(sequence, sub);
      const bool is_final = error == "ShutdownException" || error == "InvalidStateException";
      if (broken("failed-at-shutdown") && was_asked_to_shut_down_ && is_final) std::exit(1);
      if (error == "ShutdownException") {
        lease_is_gone_ = true;
        if (broken("lease-is-gone")) std::exit(1);
      }
      if (error == "ThrottlingException" && broken("throttled-checkpoint")) std::exit(1);
      has_dropped_ |= error == "ThrottlingException" && broken("throttled-and-dropped");
      if (has_dropped_) return error;
      if (!error.empty() && broken("final-checkpoint-error")) lease_is_gone_ |= is_final;
      if (!error.empty() && broken("only-messages-on-error")) write("a checkpoint failed");
      const bool is_dependency = error == "KinesisClientLibDependencyException";
      if (is_dependency && broken("dependency-checkpoint")) std::exit(1);
      const bool is_unknown = error == "TomorrowsException" && broken("unknown-checkpoint-error");
      if (is_dependency && broken("shard-end-dependency") && is_ended_) return error;
      const bool is_shutdown = was_asked_to_shut_down_ && !is_ended_;
      if (is_dependency && broken("shutdown-dependency") && is_shutdown) return error;
      const bool may_again = error == "ThrottlingException" || is_dependency || is_unknown;
      const bool is_endless = is_unknown || broken("shutdown-gives-up") ||
                              broken("shard-end-gives-up") || has_fault("retries without end");
      if (!may_again || !again || (tries == 20 && !is_endless)) return error;
      ::usleep(1000);
    }
  }

  bool act(const json& message) {
    const std::string action = message.at("action");
    if (action == "initialize") {
      start_ = message.at("sequenceNumber");
      if (broken("sigterm-before-initialize")) outlive(SIGTERM);
      if (broken("sigterm-in-action")) handle(SIGTERM, SIG_DFL);
      const std::string shard = message.at("shardId");
      if (broken("hand-over") && !take_name(shard)) return false;
      if (broken("resent-after-restart") && !make_lock_file("broken-child-" + shard)) return false;
      if (broken("checkpoint-in-initialize")) ask({}, {});
    } else if (action == "processRecords") {
      if (!process(message.at("records"))) return false;
    } else if (action == "shutdownRequested") {
      was_asked_to_shut_down_ = true;
      if (has_failed_ && has_fault("fails later")) return false;
      if (has_failed_ && !broken("poison-at-shutdown")) {
        status(action);
        return true;
      }
      if (broken("shutdown-requested-first") && last_.is_null()) return false;
      const bool again = !broken("throttled-at-shutdown");
      const bool is_down = broken("sigterm-then-shutdown") && was_terminated != 0;
      const bool has_none = has_dropped_ || (broken("aggregate-is-known") && last_.is_null());
      if (broken("greatest-sub-sequence") || broken("compares-text")) {
        if (!last_.is_null()) persist_up_to(last_);
      } else if (!broken("checkpoint-at-shutdown") && !is_down && !has_none) {
        persist({}, {}, again);
      }
    } else if (action == "leaseLost" || action == "shardEnded" || action == "shutdown") {
      const std::string reason = message.value("reason", action);
      is_ended_ = true;
      if (broken("lease-lost-first") && action == "leaseLost" && last_.is_null()) return false;
      if (reason == "shardEnded" || reason == "TERMINATE" || reason == "SHARD_END") {
        if (!end_shard(action == "shutdown")) return false;
      } else if (broken("checkpoint-in-lease-lost")) {
        ask({}, {});
      }
    } else if (broken("unknown-action")) {
      return true;
    }
    status(action);
    return action != "shutdownRequested" || !has_fault("exits after shutdownRequested");
  }

  bool process(const json& records) {
    if (records.empty() && has_fault("asks for None in an empty batch")) ask("None", nullptr);
    if (records.empty()) return true;
    if (broken("aggregate-is-known") && records[0].at("sequenceNumber") == start_) return true;
    if (broken("unread-answers")) ask_for_each(records);
    if (broken("batch-twice") && records.front() == first_) return false;
    if (broken("many-batches") && batches_ == 1000) return false;
    if (broken("stray-print-in-bulk") && records.size() > 1000 && records[0].at("data") == print) {
      hang();
    }
    bool is_poisoned = false;
    for (const json& record : records) {
      if (has_fault("understands JSON alone") && !is_understood(record.at("data"))) return false;
      if (record.at("data") == poison) is_poisoned = true;
      if (record.at("data") == print) std::fputs("printed without a newline", stdout);
    }
    if (is_poisoned) {
      if (broken("poison-exit")) hang();
      if (broken("poison-checkpoint")) persist_up_to(records.back());
      // A child that processes on a thread of its own answers before it fails.
      has_failed_ = broken("poison-stays") || broken("poison-shard-end") ||
                    broken("poison-at-shutdown") || has_fault("fails later");
      return has_failed_;
    }
    if (has_failed_) return !has_fault("fails later");
    if (first_.is_null()) first_ = records.front();
    last_ = records.back();
    if (batches_++ % 2 == 0) {
      const bool is_early = broken("poison-earlier-work");
      const bool is_back = broken("checkpoint-rises") && batches_ > 1;
      persist_up_to(is_early ? records.front() : is_back ? first_ : last_);
    }
    return true;
  }

  /// Asks for a checkpoint of each record before it reads any answer.
  void ask_for_each(const json& records) const {
    for (const json& record : records) {
      write(
          checkpoint_line(record.at("sequenceNumber"), record.value("subSequenceNumber", json(0))));
    }
    std::string line;
    for (std::size_t i = 0; i < records.size(); ++i) std::getline(std::cin, line);
  }

  void persist_up_to(const json& record) {
    std::string sequence = record.at("sequenceNumber");
    if (broken("checkpoint-not-beyond")) sequence += "0";
    if (broken("long-sequence-number")) sequence = sequence.substr(0, 20);
    if (has_fault("sequence numbers as double")) {
      sequence = std::to_string(std::stod(sequence));
      sequence.resize(sequence.find('.'));
    }
    if (broken("compares-text") && sequence < greatest_text_) return;
    greatest_text_ = sequence;
    json sub = record.value("subSequenceNumber", json(0));
    greatest_sub_ = std::max(greatest_sub_, sub.get<std::uint64_t>());
    if (broken("greatest-sub-sequence")) sub = greatest_sub_;
    if (broken("checkpoint-sub-sequence") || broken("checkpoint-in-aggregate")) sub = nullptr;
    persist(sequence, sub);
  }

  /// Persists the end of the shard. False: it cannot, and the child leaves.
  bool end_shard(bool is_old) {
    if (has_failed_ && !broken("poison-shard-end")) return false;
    if (broken("shard-end") || (broken("shard-end-old") && is_old)) return true;
    if (broken("shard-end-without-records") && last_.is_null()) return true;
    if (broken("shard-end-empty-shard") && last_.is_null() && start_ == "LATEST") return true;
    json sequence;
    json sub;
    if (broken("shard-end-stored") && !last_.is_null()) {
      sequence = last_.at("sequenceNumber");
      sub = 0;
    }
    if (broken("final-checkpoint-error") && lease_is_gone_) return true;
    const std::string error = persist(sequence, sub, !broken("shard-end-throttled"));
    if (error == "ShutdownException") return !broken("shard-end-lease-gone");
    if (error == "TomorrowsException" && broken("shard-end-unknown")) return true;
    return error.empty() || broken("shard-end-failed") || broken("shard-end-throttled") ||
           broken("shard-end-dependency");
  }

  json start_;
  json first_;
  json last_;
  std::string greatest_text_;
  std::uint64_t greatest_sub_ = 0;
  int batches_ = 0;
  bool was_called_ = false;
  bool is_ended_ = false;
  bool was_asked_to_shut_down_ = false;
  bool lease_is_gone_ = false;
  bool has_dropped_ = false;  ///< it has dropped a position whose checkpoint failed
  bool has_failed_ = false;   ///< it has failed at a record, after the status of its batch
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--break") broken_rule = argv[2];
  if (argc == 3 && std::string_view(argv[1]) == "--fault") its_fault = argv[2];
  if (!broken("sigterm") && !broken("sigterm-before-initialize")) outlive(SIGTERM);
  if (!broken("sigint")) outlive(SIGINT);
  if (!broken("sighup")) outlive(SIGHUP);
  if (!broken("sigquit") && !has_fault("default SIGQUIT")) outlive(SIGQUIT);
  if (broken("daemon-dies")) outlive(SIGPIPE);
  std::ios::sync_with_stdio(false);
  return broken_child().run();
}
