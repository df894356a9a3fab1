// SPDX-License-Identifier: Apache-2.0
// `kclxx leases` from its command line, with an aws that does as if; e2e.leases has the real one.
#include <fcntl.h>
#include <string>
#include <vector>

#include "io/descriptor.hpp"
#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

namespace {

std::string scan_with(const std::string& counter) {
  return R"({"Items": [{"leaseKey": {"S": "shardId-1"}, "leaseOwner": {"S": "host-1"}, )"
         R"("checkpoint": {"S": "TRIM_HORIZON"}, "checkpointSubSequenceNumber": {"N": "0"}, )"
         R"("leaseCounter": {"N": ")" +
         counter + R"("}}], "Count": 1, "ConsumedCapacity": null})";
}

const std::string no_table =
    "echo 'An error occurred (ResourceNotFoundException) when calling the Scan operation: Cannot "
    "do operations on a non-existent table' >&2; exit 254\n";

/// Its aws shows a table, my-app, and each command line in the file `asked`. `counter` is in sh.
class aws_box : public sandbox {
 public:
  explicit aws_box(const std::string& counter) {
    write("before", scan_with("").substr(0, scan_with("").find("\"\"}") + 1));
    write("after", scan_with("").substr(scan_with("").find("\"\"}") + 1));
    program("bin/aws",
            "echo \"$*\" >> $HOME/asked\n"
            "case $* in *--table-name\\ my-app\\ *) ;; *) " +
                no_table +
                "esac\n"
                "cat $HOME/before; " +
                counter + "; cat $HOME/after\n");
  }
};

forked_result from_stdin(const std::string& text, std::vector<std::string> options = {}) {
  const sandbox box;
  box.write("scan.json", text);
  const kclxx::io::descriptor input(::open((box / "scan.json").c_str(), O_RDONLY | O_CLOEXEC));
  options.insert(options.begin(), {"leases", "-"});
  return box.kclxx(options, {}, input.get());
}

}  // namespace

TEST_CASE("aws is asked twice, with its options, and a counter that moves is fine", "[leases]") {
  const aws_box box("wc -l < $HOME/asked | tr -d '\\n'");
  const auto found = box.kclxx({"leases", "my-app", "--interval", "0.2", "--region", "eu-north-1",
                                "--profile", "p", "--endpoint-url", "http://127.0.0.1:1"});
  CAPTURE(found.err);
  CHECK(found.status == 0);
  CHECK(found.out.starts_with("table my-app, 2 scans in "));
  CHECK(contains(found.out, "shardId-1  host-1        3  yes    TRIM_HORIZON/0    -  ok\n"));
  const std::string options =
      " --output json --consistent-read --profile p --region eu-north-1 --endpoint-url "
      "http://127.0.0.1:1\n";
  CHECK(box.read("asked").starts_with("dynamodb scan --table-name my-app" + options +
                                      "dynamodb scan --table-name my-app-CoordinatorState" +
                                      options));
}

TEST_CASE("a counter that stands still is stuck, and the exit status tells", "[leases]") {
  const aws_box box("printf 7");
  const auto found = box.kclxx({"leases", "my-app", "--interval", "0.2"});
  CHECK(found.status == 1);
  CHECK(contains(found.out, "  no     TRIM_HORIZON/0    -  stuck: host-1 has not renewed it for "));
  const auto json = box.kclxx({"leases", "my-app", "--interval", "0.2", "--json"});
  CHECK(json.status == 1);
  CHECK(contains(json.out, "\"stuck\": true"));
}

TEST_CASE("a watch goes on until its reader leaves", "[leases]") {
  const aws_box box("printf 7");
  box.program("bin/watched", std::string("{ ") + KCLXX_TOOL +
                                 " leases my-app --watch --json --interval 0.1; echo $? "
                                 ">$HOME/status; } 2>/dev/null | head -n 3\n");
  const auto found = box.start({"watched"}).result();
  CHECK(found.status == 0);
  CHECK(count(found.out, "\n") == 3);
  CHECK(contains(found.out, "\"scans\":3,"));
  CHECK_FALSE(contains(found.out, "\"stuck\":true"));  // a lease may be renewed more rarely
  CHECK(!box.read("status").empty());
}

TEST_CASE("a scan from stdin is shown once, and says what it does not tell", "[leases]") {
  const auto found = from_stdin(scan_with("7"));
  CHECK(found.status == 0);
  CHECK(found.out.starts_with("stdin\nshard "));
  CHECK(contains(found.out, "note: whether counters move is not known from one scan\n"));
  CHECK(contains(from_stdin(scan_with("7"), {"--json"}).out, "\"moves\": null"));
  CHECK(from_stdin(R"({"Items": []})").status == 1);
}

TEST_CASE("what cannot be read is told in one line", "[leases]") {
  const auto is_told = [](const forked_result& found, int status, const std::string& text) {
    CAPTURE(found.err);
    CHECK(found.status == status);
    CHECK(found.out.empty());
    CHECK(contains(found.err, "kclxx leases: " + text));
    CHECK(count(found.err, "\n") == 1);
  };
  is_told(from_stdin("{"), 5, "stdin: it is no JSON: wrong or cut off at line 1, column 2\n");
  is_told(from_stdin(""), 5, "stdin: it is empty\n");
  is_told(from_stdin(scan_with("7"), {"--watch"}), 2, "--watch is for a table that aws reads");
  const aws_box box("printf x");
  is_told(box.kclxx({"leases", "other"}), 5, "there is no table other where aws looks");
  is_told(box.kclxx({"leases", "my-app"}), 5,
          "what aws prints of my-app: Items[0]: leaseCounter is not a whole number\n");
  box.program("bin/aws", "echo >&2; echo 'Unable to locate credentials.' >&2; exit 253\n");
  is_told(box.kclxx({"leases", "my-app"}), 5,
          "aws ended with exit status 253: Unable to locate credentials.\n");
  is_told(box.kclxx({"leases", "my-app"}, {"PATH=" + (box / "none").string()}), 5,
          "aws is not in PATH; on Debian: apt-get install awscli.");
}
