// SPDX-License-Identifier: Apache-2.0
// A real child whose user code forks. process.shared runs these tests under kclxx-share, too.
#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/scripted_daemon.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"

namespace kclxx::test {

namespace {

using strings = std::vector<std::string>;

/// children/forking_child.cpp in this form.
class forking_child {
 public:
  explicit forking_child(const std::string& form)
      : daemon_({KCLXX_FORKING_CHILD, journal_path(), form}) {
    daemon_.initialize();
    daemon_.expect_status("initialize");
  }

  /// One call of processRecords; its checkpoints are answered.
  void process(const strings& texts, std::uint64_t first) {
    daemon_.records(texts, first);
    std::string line = daemon_.next_line();
    for (; contains(line, "\"checkpoint\""); line = daemon_.next_line()) daemon_.answer();
    CHECK(contains(line, "processRecords"));
  }
  /// What its handlers had, and how copies ended, once there are so many lines of it.
  [[nodiscard]] strings await_journal(std::size_t lines) const {
    strings noted;
    CHECK(eventually([&] {
      noted = read_journal();
      return noted.size() >= lines;
    }));
    return noted;
  }
  [[nodiscard]] strings read_journal() const {
    std::istringstream text(read_file(journal_path()));
    strings lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  [[nodiscard]] scripted_daemon& daemon() { return daemon_; }

 private:
  [[nodiscard]] std::string journal_path() const { return (folder_.path() / "journal").string(); }

  temporary_folder folder_;
  scripted_daemon daemon_;
};

}  // namespace

TEST_CASE("a forked copy that returns from user code, or throws, does nothing of the library's",
          "[process][P5]") {
  const std::string form = GENERATE("each", "batches", "linger", "gathered", "parallel",
                                    "completions", "elsewhere", "plain");
  const std::string fork = GENERATE("fork", "fork and throw");
  CAPTURE(form, fork);
  forking_child child(form);
  child.process({"a", "b", "c", fork, "d", "e", "f", "g"}, 1);
  strings expected{"a", "b", "c", "copy 12", "d", "e", "f", fork, "g"};
  CHECK(child.await_journal(expected.size()) == expected);
  child.process({"h"}, 9);
  child.process({"i"}, 10);
  expected.insert(expected.end(), {"h", "i"});
  CHECK(child.await_journal(expected.size()) == expected);
  CHECK(contains(child.daemon().await_stderr("a forked copy"), "end it there with exec or _exit"));
  CHECK(child.daemon().end() == 0);
  CHECK(child.daemon().rest().find_first_not_of('\n') == std::string::npos);
  CHECK(child.read_journal() == expected);
}

TEST_CASE("a forked copy that calls _exit or executes a program is left alone", "[process][P5]") {
  const std::string form = GENERATE("each", "linger", "parallel", "completions");
  const bool is_ended = GENERATE(true, false);
  CAPTURE(form, is_ended);
  forking_child child(form);
  child.process({"a", is_ended ? "fork and end" : "fork and run", "b"}, 1);
  CHECK(child.await_journal(4) == (is_ended ? strings{"a", "b", "copy 3", "fork and end"}
                                            : strings{"a", "b", "copy 4", "fork and run"}));
  CHECK(child.daemon().end() == 0);
  CHECK_FALSE(contains(child.daemon().stderr_so_far(), "a forked copy"));
}

}  // namespace kclxx::test
