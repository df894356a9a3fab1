// SPDX-License-Identifier: Apache-2.0
// A child without the library, for the tests of the tool. It answers each action, and does what its
// arguments tell before the status of a batch: a WHAT in every batch, N:WHAT in the N-th.
//   simple_child [WHAT...] [N:WHAT...]
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

const std::string null_checkpoint =
    R"({"action":"checkpoint","sequenceNumber":null,"subSequenceNumber":null})";

void say(const std::string& line) { std::cout << "\n" << line << "\n" << std::flush; }

void answer(const std::string& action) {
  say(R"({"action":"status","responseFor":")" + action + R"("})");
}

/// The value of "action", which the daemon writes first.
std::string action_of(const std::string& line) {
  const std::string key = R"("action":")";
  const std::size_t begin = line.find(key) + key.size();
  return line.substr(begin, line.find('"', begin) - begin);
}

/// Asks for a checkpoint, and reads the answer. Returns whether it has succeeded.
bool checkpoint(const std::string& line) {
  say(line);
  std::string reply;
  std::getline(std::cin, reply);
  return reply.find(R"("error":null)") != std::string::npos;
}

/// Does what an argument tells. Returns false when no status must follow.
bool obey(const std::string& what) {
  if (what == "checkpoint") {
    while (!checkpoint(null_checkpoint)) {
    }
  } else if (what.starts_with("checkpoint at ")) {
    checkpoint(R"({"action":"checkpoint","sequenceNumber":")" + what.substr(14) +
               R"(","subSequenceNumber":0})");
  } else if (what == "wrong status") {
    answer("somethingElse");
    return false;
  } else if (what == "print") {
    say("this is no JSON");
  } else if (what == "20 MB") {
    say(std::string(20'000'000, 'x'));
  } else if (what == "hang") {
    ::sleep(1000);
  } else if (what == "print without end") {
    while (std::cout << "y\n") {
    }
  } else if (what == "die") {
    std::abort();
  } else if (what == "leave") {
    std::exit(7);
  } else {
    std::cerr << "simple_child: what is '" << what << "'?\n";
    std::exit(99);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> in_every_batch;
  std::multimap<int, std::string> by_batch;
  std::string at_end;
  int exit_status = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t colon = word.find(':');
    if (word.starts_with("exit:")) {
      exit_status = std::stoi(word.substr(5));
    } else if (word == "late") {
      at_end = null_checkpoint;
    } else if (colon == std::string::npos) {
      in_every_batch.push_back(word);
    } else {
      by_batch.emplace(std::stoi(word.substr(0, colon)), word.substr(colon + 1));
    }
  }
  int batches = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const std::string action = action_of(line);
    bool has_status = true;
    if (action == "processRecords") {
      ++batches;
      for (const std::string& what : in_every_batch) has_status = obey(what) && has_status;
      const auto [begin, end] = by_batch.equal_range(batches);
      for (auto entry = begin; entry != end; ++entry) {
        has_status = obey(entry->second) && has_status;
      }
    }
    if (action == "shardEnded") checkpoint(null_checkpoint);
    if (has_status) answer(action);
    if (!at_end.empty() && action == "leaseLost") say(at_end);
  }
  return exit_status;
}
