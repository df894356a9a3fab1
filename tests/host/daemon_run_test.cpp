// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

namespace {

// Prints its arguments and environment, and the files that it is given.
const std::string java =
    "for a; do echo \"arg: $a\"; done\n"
    "env | grep ^KCLXX_ | grep -Ev '^KCLXX_(DAEMON_PROCESS|FAILURES)=' | sort\n"
    "while [ $# -gt 0 ]; do\n"
    "  case $1 in -p) echo properties; cat $2;; -l) echo logging; cat $2;; esac; shift\n"
    "done\n";

const std::string properties =
    "# mine\nexecutableName=/bin/true\napplicationName=my-app\nstreamName=my-stream\n"
    "AwsCredentialsProvider=DefaultCredentialsProvider\nretrievalMode=POLLING\n"
    "initialPositionInStream=LATEST\nshutdownGraceMillis=5000\nlogWarningForTaskAfterMillis=60000\n"
    "workerId=me\nregionName=eu-central-1\n";

const std::string not_compiled =
    "kclxx daemon run: only AWS's classes run: kclxx's were not compiled: kclxx daemon fetch needs "
    "a JDK for it\n";

using words = std::vector<std::string>;

/// With Java, jars and properties.
struct furnished : sandbox {
  furnished() {
    program("bin/java", ::java);
    write("jars/amazon-kinesis-client-multilang-0.jar", "");
    write("a.properties", properties);
  }
  /// kclxx daemon run with these.
  [[nodiscard]] forked_result run(const words& options = {}, const words& environment = {}) const {
    words arguments{"daemon", "run", "a.properties", "--jars", "jars"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return kclxx(arguments, environment);
  }
};

/// The jar with what this tool has in src/host/java, in the folder of the jars: its name has their
/// hash.
std::string own_jar(const sandbox& box) {
  const auto sum =
      box.start(
             {"sh", "-c", "cd " KCLXX_SOURCE_DIR "/src/host/java && sha256sum *.java | sha256sum"})
          .result()
          .out;
  return "jars/kclxx-" + sum.substr(0, 12) + ".jar";
}

}  // namespace

TEST_CASE("run becomes Java with the class path, the charset and the names", "[daemon][run]") {
  const furnished box;
  const auto run = box.run({"--heap", "640m", "--", "-XX:+UseSerialGC", "-Da=b c"});
  CHECK(run.status == 0);
  CHECK(run.err == not_compiled);
  CHECK(contains(run.out,
                 "arg: -Dfile.encoding=UTF-8\narg: -XX:MaxRAMPercentage=50\n"
                 "arg: -XX:MaxNewSize=64m\narg: -XX:TieredStopAtLevel=1\n"
                 "arg: -XX:MetaspaceSize=96m\narg: -cp\narg: " +
                     (box / "jars/amazon-kinesis-client-multilang-0.jar").string() +
                     "\narg: -Xmx640m\narg: -XX:+UseSerialGC\narg: -Da=b c\n"
                     "arg: software.amazon.kinesis.multilang.MultiLangDaemon\narg: -p\n"));
  CHECK(contains(run.out,
                 "KCLXX_APPLICATION_NAME=my-app\nKCLXX_STREAM_NAME=my-stream\n"
                 "KCLXX_WORKER_ID=me\n"));
  CHECK(contains(run.out, "properties\nexecutableName=/bin/true\n"));
  CHECK(contains(run.out, "logging\n<?xml"));
}

TEST_CASE("run chooses Java's options, and takes back what the user or a variable decides",
          "[daemon][run]") {
  const furnished box;
  const auto options = [&](const words& added, const words& environment) {
    const auto run = box.run(added, environment);
    CHECK(run.status == 0);
    const std::string begin = "arg: -Dfile.encoding=UTF-8\n";
    REQUIRE(run.out.starts_with(begin));
    return run.out.substr(begin.size(), run.out.find("arg: -cp\n") - begin.size());
  };
  const std::string usual =
      "arg: -XX:+UseSerialGC\narg: -XX:MaxRAMPercentage=50\narg: -XX:MaxNewSize=64m\n"
      "arg: -XX:TieredStopAtLevel=1\narg: -XX:MetaspaceSize=96m\n";
  CHECK(options({}, {}) == usual);
  CHECK(options({"--heap", "1g"}, {}) == usual);  // which decides, by Java's own rule
  CHECK(options({"--", "-XX:+UseG1GC", "-XX:MaxNewSize=9m"}, {}) ==
        "arg: -XX:MaxRAMPercentage=50\narg: -XX:TieredStopAtLevel=1\n"
        "arg: -XX:MetaspaceSize=96m\n");
  CHECK(options({}, {"JAVA_TOOL_OPTIONS= -XX:MaxRAMPercentage=75  -Da=b",
                     "_JAVA_OPTIONS=-XX:+UseZGC", "JDK_JAVA_OPTIONS=-XX:MetaspaceSize=9m"}) ==
        "arg: -XX:MaxNewSize=64m\narg: -XX:TieredStopAtLevel=1\n");
  const std::string without_young =
      "arg: -XX:+UseSerialGC\narg: -XX:MaxRAMPercentage=50\n"
      "arg: -XX:TieredStopAtLevel=1\narg: -XX:MetaspaceSize=96m\n";
  CHECK(options({"--", "-Xmn32m"}, {}) == without_young);
  CHECK(options({}, {"JDK_JAVA_OPTIONS='-XX:NewRatio=2'"}) == without_young);
  CHECK(options({}, {"JAVA_TOOL_OPTIONS=\"-XX:MaxRAMFraction=4\" -XX:-TieredCompilation"}) ==
        "arg: -XX:+UseSerialGC\narg: -XX:MaxNewSize=64m\narg: -XX:MetaspaceSize=96m\n");
  box.write("java.options", "# ours\n-Da=b\n\"-XX:NewSize=1m\"\n");
  CHECK(options({"--", "@java.options"}, {}) == without_young);
  CHECK(options({}, {"JAVA_TOOL_OPTIONS=-XX:VMOptionsFile=java.options"}) == without_young);
  CHECK(options({"--busy"}, {}) ==
        "arg: -XX:+UseParallelGC\narg: -XX:MaxRAMPercentage=50\narg: -XX:NewRatio=1\n"
        "arg: -XX:MetaspaceSize=96m\n");
}

TEST_CASE("run names Java's process to the programs below it", "[daemon][run][worker_stop]") {
  const furnished box;
  box.program("bin/java", "echo $KCLXX_DAEMON_PROCESS; cut -d ' ' -f 1,22 /proc/$$/stat\n");
  const auto run = box.run();
  const std::string named = run.out.substr(0, run.out.find('\n') + 1);
  CHECK(named.size() > 4);
  CHECK(run.out == named + named);
}

TEST_CASE("a worker id is made when there is none, for the daemon and its children",
          "[daemon][run]") {
  const furnished box;
  const auto id_of = [&] {
    const auto run = box.run({}, {"KCLXX_PROPERTY_workerId="});
    const auto at = run.out.find("KCLXX_WORKER_ID=");
    REQUIRE(at != std::string::npos);
    const std::string id = run.out.substr(at + 16, run.out.find('\n', at) - at - 16);
    CHECK(contains(run.out, "\nworkerId=" + id + "\n"));
    return id;
  };
  const std::string first = id_of();
  CHECK(first.size() > 17);
  CHECK(id_of() != first);
}

TEST_CASE("the effective properties are readable by the owner alone, and by nobody to write",
          "[daemon][run]") {
  const furnished box;
  box.program("bin/java",
              "while [ $# -gt 0 ]; do case $1 in\n"
              "-p) stat -L -c %a $2; (echo more >> $2) 2>/dev/null && echo written;; esac; shift\n"
              "done\n");
  CHECK(box.run().out == "600\n");
}

TEST_CASE("run stays the same process, and listens to SIGTERM", "[daemon][run]") {
  const furnished box;
  box.program(
      "bin/java",
      "trap 'echo graceful > stopped; exit 7' TERM\n"
      "echo $$ > started\nmkfifo never\n: <> never\ncat < never & echo ready > fifo\nwait\n");
  REQUIRE(::system(("mkfifo " + (box / "fifo").string()).c_str()) == 0);
  const forked_copy run([&] {
    ::setpgid(0, 0);
    std::signal(SIGTERM, SIG_IGN);  // what a careless supervisor leaves
    box.become({KCLXX_TOOL, "daemon", "run", "a.properties", "--jars", "jars"});
    return 98;
  });
  CHECK(box.read("fifo") == "ready\n");  // waits for it
  CHECK(box.read("started") == std::to_string(run.pid()) + "\n");
  REQUIRE(::kill(run.pid(), SIGTERM) == 0);
  CHECK(run.wait() == 7);
  ::kill(-run.pid(), SIGKILL);  // the cat
  CHECK(box.read("stopped") == "graceful\n");
}

TEST_CASE("a worker that cannot be initialized does not leave with 0, and the log says why",
          "[daemon][run]") {
  const furnished box;
  const auto logs = [&](const std::string& text) {
    return "printf '%-200000s\\n' ': " + text + "' > $KCLXX_FAILURES\n";
  };
  const std::string thrown =
      "java.lang.NullPointerException: leaseCounter is marked non-null but is null at a.b.C";
  const words run{"daemon", "run", "a.properties", "--jars", "jars", "--kcl", "2"};
  box.write("jars/amazon-kinesis-client-multilang-2.jar", "");
  box.program("bin/java", logs("Caught exception when initializing LeaseCoordinator " + thrown) +
                              logs("Unable to initialize after 20 attempts. Shutting down. "
                                   "java.lang.RuntimeException: " +
                                   thrown) +
                              "echo left\n");
  const auto unable = box.kclxx(run);
  CHECK(unable.status == 128 + SIGKILL);
  CHECK(unable.out.empty());
  CHECK(contains(unable.err, "kclxx daemon run: the lease table has rows of KCL 3"));
  CHECK(unable.err.find("rows of KCL 3") == unable.err.rfind("rows of KCL 3"));

  box.program("bin/java",
              logs("Throwable encountered in lease taking thread " + thrown) + "echo left\n");
  const auto works = box.kclxx(run);
  CHECK(works.status == 0);
  CHECK(works.out == "left\n");
  CHECK(works.err == unable.err);
}

TEST_CASE("run names the number of problems in one line and starts", "[daemon][run]") {
  const furnished box;
  const auto run = box.run({}, {"KCLXX_PROPERTY_maxrecords=5"});
  CHECK(run.status == 0);
  CHECK(run.err ==
        "kclxx daemon run: a.properties has 1 problem; to list: kclxx daemon check --kcl 3 "
        "a.properties\n" +
            not_compiled);
  CHECK(contains(run.out, "arg: "));
}

TEST_CASE("run says when a backlog does not fit in the heap", "[daemon][run]") {
  const furnished box;
  for (const words& heap : {words{"--heap", "256m"}, words{"--", "-Xmx256m"}}) {
    const auto run = box.run(heap);
    CHECK(run.status == 0);
    CHECK(contains(run.err, "a.properties has 1 problem; to list: "));
  }
  CHECK(contains(box.kclxx({"daemon", "check", "a.properties", "--heap", "256m"}).out,
                 "a heap of 256 MB has room for 1 shards"));
  CHECK(box.run({"--heap", "512m"}).err == not_compiled);
}

TEST_CASE("what run needs and does not find is one line", "[daemon][run]") {
  const furnished box;
  const auto refused = [&](const words& arguments, const words& environment,
                           const std::string& line) {
    const auto run = box.kclxx(arguments, environment);
    CHECK(run.status == 5);
    CHECK(contains(run.err, line));
    CHECK(run.err.find('\n') == run.err.size() - 1);
    CHECK(run.out.empty());
  };
  refused({"daemon", "run", "absent", "--jars", "jars"}, {},
          "kclxx daemon run: absent cannot be read: No such file or directory");
  refused({"daemon", "run", "bin", "--jars", "jars"}, {}, "bin cannot be read: Is a directory");
  refused({"daemon", "run", "a.properties"}, {}, "this fetches it: kclxx daemon fetch --kcl 3\n");
  refused({"daemon", "run", "a.properties", "--jars", "jars"}, {"KCLXX_PROPERTY_=x"},
          "kclxx daemon run: KCLXX_PROPERTY_ in the environment names no key\n");
  refused({"daemon", "run", "a.properties", "--cache", "mine"}, {},
          "this fetches it: kclxx daemon fetch --kcl 3 --cache mine\n");
  refused({"daemon", "run", "a.properties", "--jars", "jars", "--logback", "no.xml"}, {},
          "no.xml cannot be read");
  refused({"daemon", "run", "a.properties", "--jars", "jars"}, {"JAVA_HOME=/nowhere"},
          "there is no bin/java in JAVA_HOME, /nowhere");
  refused({"daemon", "run", "a.properties", "--jars", "jars"}, {"PATH=/nowhere"},
          "apt-get install openjdk-17-jre-headless");
  box.write("b.properties", "a=1\nb=\\u12\n");
  refused({"daemon", "run", "b.properties", "--jars", "jars"}, {}, "b.properties:2: \\u needs");
  CHECK(box.kclxx({"daemon", "run", "a.properties", "--heap", "much"}).status == 2);
}

TEST_CASE("print-command prints what sh then runs to the same effect", "[daemon][run]") {
  const furnished box;
  const words options{"a.properties", "--jars", "jars", "--", "-Dquote='$HOME *'"};
  const auto with = [&](const char* command) {
    words arguments{"daemon", command};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return box.kclxx(arguments, {"KCLXX_PROPERTY_tableName=it's \"mine\""});
  };
  const auto printed = with("print-command");
  REQUIRE(printed.status == 0);
  box.write("script", printed.out);
  const auto by_sh = box.start({"sh", "script"}).result();
  // Where the files are is all that differs.
  const auto comparable = [](std::string text) {
    for (const std::string part : {"arg: /dev/fd/", "arg: /proc/self/fd/", "KCLXX_PROPERTY_"}) {
      for (auto at = text.find(part); at != std::string::npos; at = text.find(part)) {
        text.erase(at, text.find('\n', at) - at + 1);
      }
    }
    return text;
  };
  CHECK(by_sh.status == 0);
  CHECK(comparable(by_sh.out) == comparable(with("run").out));
  CHECK(contains(by_sh.out, "tableName=it\\'s\\ \\\"mine\\\"\n"));
}

TEST_CASE("the printed command replaces the shell, also by a path that looks like an assignment",
          "[daemon][run]") {
  const furnished box;
  box.program("f=j/bin/java", "echo $$\n");
  const auto printed = box.kclxx({"daemon", "print-command", "a.properties", "--jars", "jars"},
                                 {"JAVA_HOME=" + (box / "f=j").string()});
  box.write("script", printed.out);
  forked_copy shell = box.start({"sh", "script"});
  const auto by_sh = shell.result();
  CHECK(by_sh.out == std::to_string(shell.pid()) + "\n");
}

TEST_CASE("a NUL in a property is refused: no variable and no script has one", "[daemon][run]") {
  const furnished box;
  box.write("b.properties", properties + "streamName=a\\u0000b\n");
  for (const char* command : {"run", "print-command"}) {
    const auto refused = box.kclxx({"daemon", command, "b.properties", "--jars", "jars"});
    CHECK(refused.status == 5);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, "b.properties:12: streamName has a NUL"));
  }
  const auto checked = box.kclxx({"daemon", "check", "b.properties"});
  CHECK(checked.status == 1);
  CHECK(checked.out.starts_with("b.properties:12: error: streamName has a NUL"));
}

TEST_CASE("check lists problems with their place, and its status shows whether there are any",
          "[daemon][check]") {
  const furnished box;
  const auto sound = box.kclxx({"daemon", "check", "a.properties"});
  CHECK(sound.status == 0);
  CHECK(sound.out == "0 errors, 0 warnings\n");

  box.write("b.properties", properties + "shutdownGraceMillis=0\n");
  const auto warned = box.kclxx({"daemon", "check", "b.properties"});
  CHECK(warned.status == 0);
  CHECK(warned.out.starts_with("b.properties:8: warning: shutdownGraceMillis is repeated"));
  CHECK(contains(warned.out, "\nb.properties:12: warning: shutdownGraceMillis is 0\n    why: "));
  CHECK(contains(warned.out, "\n0 errors, 2 warnings\n"));
  CHECK(box.kclxx({"daemon", "check", "b.properties", "--strict"}).status == 1);

  const auto failed =
      box.kclxx({"daemon", "check", "a.properties"}, {"KCLXX_PROPERTY_tableName=a b"});
  CHECK(failed.status == 1);
  CHECK(failed.out ==
        "KCLXX_PROPERTY_tableName: error: tableName cannot name a table\n"
        "    why: It is the lease table's name, and DynamoDB refuses it.\n"
        "    fix: Write 3 to 255 of A-Z a-z 0-9 _ . -\n"
        "1 error, 0 warnings\n");
}

TEST_CASE("check asks the daemon's reader where it is, and otherwise says that it judged the keys",
          "[daemon][check]") {
  const furnished box;
  box.program("bin/java",
              "for a; do file=$a; done\ngrep -q ^workerId=me $file || exit 1\n"
              "printf 'stops\\t\\tIt cannot.\\n'\n");
  const words check{"daemon", "check", "a.properties", "--jars", "jars"};
  const auto without = box.kclxx(check);
  CHECK(without.status == 0);
  CHECK(box.kclxx({"daemon", "check", "a.properties", "--jars", "jars", "--strict"}).status == 1);
  CHECK(contains(without.err,
                 "kclxx daemon check: only the keys were judged, not their values: kclxx daemon "
                 "fetch found no JDK"));
  CHECK(contains(box.kclxx({"daemon", "check", "a.properties"}).err,
                 "this fetches it: kclxx daemon"));
  box.write(own_jar(box), "");
  const auto with = box.kclxx(check);
  CHECK(with.status == 1);
  CHECK(with.err.empty());
  CHECK(contains(with.out, "error: the daemon does not start with this file: It cannot.\n"));
  box.program("bin/java", "echo \"Error: $*\" >&2; exit 1\n");
  const auto with_collector = box.kclxx(check, {"JAVA_TOOL_OPTIONS=-XX:+UseZGC"});
  CHECK(contains(with_collector.err, "Java says: Error: -XX:"));
  CHECK_FALSE(contains(with_collector.err, "UseSerialGC"));
  box.program("bin/java", "echo Error: no such class >&2; exit 1\n");
  CHECK(contains(box.kclxx(check).err, "not their values: Java says: Error: no such class\n"));
  // What it does not start with, it does not hold up.
  CHECK(box.run().status == 1);
}

TEST_CASE("kclxx's classes run the daemon where they were compiled, and AWS's alone with --stock",
          "[daemon][run]") {
  const furnished box;
  const std::string ours = own_jar(box);
  box.write(ours, "");
  box.write("jars/kclxx-0123456789ab.jar", "");  // of another kclxx
  const auto expect = [&](const words& options, const std::string& why_stock) {
    words print{"daemon", "print-command", "a.properties", "--jars", "jars"};
    print.insert(print.end(), options.begin(), options.end());
    const auto run = box.run(options);
    const auto printed = box.kclxx(print);
    const bool is_ours = why_stock.empty();
    const std::string main_class = std::string("software.amazon.kinesis.multilang.") +
                                   (is_ours ? "StreamsDaemon" : "MultiLangDaemon");
    CHECK(contains(run.out, "\narg: " + main_class + "\narg: -p\n"));
    CHECK(contains(printed.out, " '" + main_class + "' "));
    CHECK(contains(run.out, "/" + ours) == is_ours);
    CHECK_FALSE(contains(run.out, "kclxx-0123456789ab"));
    const std::string line = "only AWS's classes run: " + why_stock;
    CHECK(contains(run.err, "kclxx daemon run: " + line + "\n") == !is_ours);
    CHECK(printed.out.starts_with("# " + line + "\n") == !is_ours);
  };
  expect({}, "");
  expect({"--stock"}, "--stock");
  expect({"--", "-cp", "mine"}, "the class path is yours");
  box.write(ours.substr(0, ours.size() - 3) + "sha256", std::string(64, '0') + "  x\n");
  expect({}, (box / ours).string() + " is not as it was compiled");
}

TEST_CASE("kclxx's writer of batches is for the tested daemons, by their hash", "[daemon][run]") {
  const furnished box;
  box.write(own_jar(box), "");
  const auto runs_ours = [&](const words& options) {
    const auto run = box.run(options);
    const std::string line = "the daemon's own writer writes the batches: kclxx's was not compared";
    CHECK(contains(run.err, line) == (options.empty() && !run.err.empty()));
    return contains(run.out, "arg: -Dkclxx.writer=true\n");
  };
  CHECK_FALSE(runs_ours({}));
  // The hash of a tested one.
  const auto sums =
      box.start({"sh", "-c",
                 "grep multilang " KCLXX_SOURCE_DIR "/src/host/daemon/jars/kcl2/SHA256SUMS"})
          .result();
  box.program("bin/sha256sum", "echo '" + sums.out.substr(0, 64) + "  x'\n");
  CHECK(runs_ours({}));
  CHECK_FALSE(runs_ours({"--stock"}));
  CHECK(contains(
      box.kclxx({"daemon", "check", "a.properties", "--jars", "jars", "--heap", "179m"}).out,
      "100 MB, and 20 MB for each at maxRecords = 10000"));
}

TEST_CASE("run has a worker for each file, whose children get names from kclxx's classes",
          "[daemon][run][streams]") {
  const furnished box;
  box.write(own_jar(box), "");
  box.write("b.properties", properties + "applicationName=events\nstreamName=other\nworkerId=\n");
  const words both{"a.properties", "b.properties", "--jars", "jars"};
  const auto with = [&](const char* command, const words& options = {}) {
    words arguments{"daemon", command};
    arguments.insert(arguments.end(), both.begin(), both.end());
    arguments.insert(arguments.end(), options.begin(), options.end());
    return box.kclxx(arguments);
  };
  const auto run = with("run");
  CHECK(run.status == 0);
  CHECK(contains(run.out, "\narg: -a\narg: my-app\narg: -p\n"));
  CHECK(contains(run.out, "\narg: -a\narg: events\narg: -p\n"));
  CHECK(contains(run.out, "\napplicationName=my-app\n"));
  CHECK(contains(run.out, "\napplicationName=events\n"));
  CHECK_FALSE(contains(run.out, "KCLXX_STREAM_NAME="));
  CHECK(contains(run.err, "kclxx daemon run: a.properties b.properties have 3 problems"));

  box.write("script", with("print-command").out);
  const auto by_sh = box.start({"sh", "script"}).result();
  CHECK(by_sh.status == 0);
  CHECK(contains(by_sh.out, "\napplicationName=my-app\n"));
  CHECK(contains(by_sh.out, "\napplicationName=events\n"));
  CHECK(contains(by_sh.out, "logging\n<?xml"));

  const auto stock = with("run", {"--stock"});
  CHECK(stock.status == 5);
  CHECK(contains(stock.err,
                 "several streams in one process need kclxx's classes, and only AWS's "
                 "classes run: --stock; "));
  const auto many = box.kclxx({"daemon", "print-command", "1", "2", "3", "4", "5", "6", "7"});
  CHECK(many.status == 5);
  CHECK(contains(many.err, "at most 6 streams"));
}

TEST_CASE("check and run refuse two files of one application, or of one lease table",
          "[daemon][check][run][streams]") {
  const furnished box;
  box.write(own_jar(box), "");
  box.write("b.properties", properties + "streamName=other\n");
  const auto refused = [&](const std::string& what) {
    const auto check = box.kclxx({"daemon", "check", "a.properties", "b.properties"});
    CHECK(check.status == 1);
    CHECK(contains(check.out, ": error: " + what + "\n    why: "));
    for (const char* command : {"run", "print-command"}) {
      const auto run =
          box.kclxx({"daemon", command, "a.properties", "b.properties", "--jars", "jars"});
      CHECK(run.status == 5);
      CHECK(run.out.empty());
      CHECK(contains(run.err, "b.properties: " + what + ". "));
      CHECK(run.err.find('\n') == run.err.size() - 1);
    }
  };
  refused("applicationName is my-app, as in a.properties");
  box.write("b.properties", properties + "applicationName=events\ntableName=my-app\n");
  refused("tableName is my-app, as in a.properties");
  box.write("b.properties", properties + "applicationName=events\n");
  const auto sound = box.kclxx({"daemon", "check", "a.properties", "b.properties"});
  CHECK_FALSE(contains(sound.out, ", as in "));
}

TEST_CASE("check looks for the program at its path", "[daemon][check]") {
  const furnished box;
  const auto checked = [&](const std::string& command) {
    return box.kclxx({"daemon", "check", "a.properties"},
                     {"KCLXX_PROPERTY_executableName=" + command});
  };
  box.program("my programs/child", "");
  box.write("text", "");
  CHECK(checked("./bin/java 1 2").status == 0);
  CHECK(checked("java").status == 0);
  CHECK(
      contains(checked("./my programs/child 1").out, "\"./my programs/child\", which has a blank"));
  CHECK(contains(checked("./text").out, "cannot be executed"));
  CHECK(contains(checked("./absent").out, "is not there"));
  CHECK(contains(checked("/usr").out, "is a directory"));
  CHECK(box.kclxx({"daemon", "check", "a.properties", "--without-program"},
                  {"KCLXX_PROPERTY_executableName=./absent"})
            .status == 0);
}

TEST_CASE("a path that Java cannot decode is refused before it starts", "[daemon][run]") {
  const furnished box;
  box.write("caf\u00e9/amazon-kinesis-client-multilang-0.jar", "");
  const words run{"daemon", "run", "a.properties", "--jars", "caf\u00e9"};
  const auto refused = box.kclxx(run, {"LC_ALL=C"});
  CHECK(refused.status == 5);
  CHECK(contains(refused.err,
                 "caf\u00e9/amazon-kinesis-client-multilang-0.jar is not in ASCII, and Java does "
                 "not find it in this locale"));
  CHECK(box.kclxx(run, {"LC_ALL=C.UTF-8"}).status == 0);
}

TEST_CASE("without /proc the daemon is not started, and check judges the keys: one line says so",
          "[daemon][run]") {
  const furnished box;
  const std::string why = "Java gets its files by /proc, which is not mounted here: mount ";
  const auto run = box.kclxx_without_proc({"daemon", "run", "a.properties", "--jars", "jars"});
  CAPTURE(run.out, run.err);
  CHECK(run.status == 5);
  CHECK(run.out.empty());
  CHECK(run.err == not_compiled + "kclxx daemon run: " + why + "-t proc proc /proc\n");

  box.write(own_jar(box), "");
  const auto check = box.kclxx_without_proc({"daemon", "check", "a.properties", "--jars", "jars"});
  CHECK(check.status == 0);
  CHECK(contains(check.err, "only the keys were judged, not their values: " + why));
}
