// SPDX-License-Identifier: Apache-2.0
// What `kclxx local` does before it becomes Node.js; e2e.local has the rest.
#include <string>

#include "host/trusted_packages.hpp"
#include "support/catch.hpp"
#include "support/kept_folder.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;

namespace {

/// A sandbox with programs that do as if: npm and mvn bring one file, node shows its arguments.
class local_box : public sandbox {
 public:
  local_box() {
    trust_packages(*this);
    program("bin/npm",
            "echo \"npm $@\" >> $HOME/asked\n"
            "while [ \"$1\" != --prefix ]; do shift; done\n"
            "mkdir -p $2/node_modules/kinesis-local\n"
            "cp $2/package.json $2/package-lock.json $HOME\n"
            "echo jar > $2/node_modules/kinesis-local/main.js\n"
            "echo jar > $2/node_modules/kinesis-local/server.json\n");
    program("bin/mvn", "echo \"mvn $@\" >> $HOME/asked\n" + bring_jars + "cp $to/pom.xml $HOME\n");
    program("bin/java", "exit 0\n");
    program(
        "bin/node",
        "shift; printf '%s\\n' \"$@\"; echo \"packages=$KCLXX_LOCAL_PACKAGES$NODE_PATH\"; cat\n");
  }

  /// With only what is in this box's bin, and the least of the system.
  [[nodiscard]] forked_result kclxx_without(const std::string& missing,
                                            const std::vector<std::string>& arguments) const {
    std::filesystem::remove(*this / ("bin/" + missing));
    for (const char* program : {"mkdir", "cp", "cat", "grep", "awk", "env"}) {
      std::filesystem::create_symlink(std::string("/usr/bin/") + program,
                                      *this / (std::string("bin/") + program));
    }
    return kclxx(arguments, {"PATH=" + (*this / "bin").string()});
  }
};

}  // namespace

TEST_CASE("fetch brings npm's packages and DynamoDB Local once, and prints three folders",
          "[local][fetch]") {
  const local_box box;
  const auto first = box.kclxx({"local", "fetch"});
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  const std::string cache = (box / ".cache/kclxx/").string();
  CHECK(first.out.starts_with(cache + "local-program-"));
  CHECK(contains(first.out, "\n" + cache + "local-packages-"));
  CHECK(contains(first.out, "\n" + cache + "dynamodb-local-"));
  CHECK(box.list(".cache/kclxx").size() == 4);  // and the lock
  CHECK(contains(box.read("package.json"), "\"kinesis-local\": "));
  CHECK(contains(box.read("package-lock.json"), "\"integrity\": \"sha512-"));
  CHECK(contains(box.read("pom.xml"), "<artifactId>DynamoDBLocal</artifactId>"));
  const std::string asked = box.read("asked");
  CHECK(contains(asked, "npm ci --prefix "));
  CHECK(contains(asked, " --ignore-scripts "));

  const auto second = box.kclxx({"local", "fetch"});
  CHECK(second.out == first.out);
  CHECK(second.err.empty());
  CHECK(box.read("asked") == asked);
}

TEST_CASE("the program in the cache is the one in the source", "[local][fetch]") {
  const local_box box;
  const auto fetched = box.kclxx({"local", "fetch"});
  const std::filesystem::path program = fetched.out.substr(0, fetched.out.find('\n'));
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(KCLXX_SOURCE_DIR "/src/host/local/program")) {
    if (entry.path().extension() != ".js") continue;
    ++files;
    CAPTURE(entry.path().string());
    CHECK(read_file(program / entry.path().filename()) == read_file(entry.path()));
  }
  CHECK(files > 3);
}

TEST_CASE("an npm that fails leaves nothing of its package", "[local][fetch]") {
  const local_box box;
  box.program("bin/npm", "echo no network\nexit 3\n");
  const auto failed = box.kclxx({"local", "fetch"});
  CHECK(failed.status == 5);
  CHECK(contains(failed.err, "kclxx local fetch: npm failed with status 3; see its last lines\n"));
  CHECK(box.list(".cache/kclxx").size() == 2);  // the lock, and the program, which needs nobody
}

TEST_CASE("nothing that was changed since it was fetched runs", "[local][fetch]") {
  const local_box box;
  const auto fetched = box.kclxx({"local", "fetch"});
  REQUIRE(box.kclxx({"local", "start"}).status == 0);
  struct change {
    std::string folder;
    std::string file;
  };
  const auto& [folder, file] =
      GENERATE(change{"local-program-", "local.js"}, change{"local-program-", "kinesis.js"},
               change{"local-packages-", "main.js"}, change{"local-packages-", "server.json"},
               change{"dynamodb-local-", "guava-33.4.0-jre.jar"});
  const auto begin = fetched.out.find((box / ".cache/kclxx" / folder).string());
  REQUIRE(begin != std::string::npos);
  const std::filesystem::path place =
      fetched.out.substr(begin, fetched.out.find('\n', begin) - begin);
  const auto refused = [&, name = file](const std::string& what) {
    for (const char* command : {"start", "fetch"}) {
      const auto result = box.kclxx({"local", command});
      CHECK(result.status == 5);
      CHECK(result.out.empty());
      CHECK(contains(result.err, place.string() + " is not as it was fetched: " + name + what +
                                     "; remove the folder, and fetch again: kclxx local fetch\n"));
    }
  };
  std::ofstream(place / file, std::ios::app) << "\nmore\n";
  if (folder == "local-program-") refused(" was changed");
  std::ofstream(place / file) << "other\n";
  refused(" was changed");
  std::filesystem::remove(place / file);
  refused(" is missing");
}

TEST_CASE("each program that is missing is named with its Debian package", "[local]") {
  struct missing {
    std::string program;
    std::string message;
  };
  for (const auto& [program, message] :
       {missing{"npm", "npm is not in PATH; on Debian: apt-get install npm"},
        missing{"mvn", "mvn is not in PATH; on Debian: apt-get install maven"},
        missing{"node", "node is not in PATH; on Debian: apt-get install nodejs"},
        missing{"java",
                "java is not in PATH; on Debian: apt-get install openjdk-17-jre-headless"}}) {
    const local_box box;
    const auto failed = box.kclxx_without(program, {"local", "start"});
    CHECK(failed.status == 5);
    CHECK(failed.out.empty());
    CHECK(contains(failed.err, "kclxx local start: " + message + "\n"));
  }
}

TEST_CASE("what starts nothing needs no packages", "[local]") {
  const local_box box;
  for (const char* command : {"stop", "env", "status"}) {
    const auto ran = box.kclxx({"local", command});
    CHECK(ran.status == 0);
    CHECK(ran.out == std::string(command) + "\ndirectory=" +
                         (box / ".local/state/kclxx/local").string() + "\npackages=\n");
  }
  CHECK(box.read("asked").empty());
  CHECK_FALSE(std::filesystem::exists(box / ".local"));
}

TEST_CASE("the directory is the option, the variable, or the user's", "[local]") {
  const local_box box;
  const auto directory_of = [&](const std::vector<std::string>& options,
                                const std::vector<std::string>& environment) {
    std::vector<std::string> arguments{"local", "status"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const std::string out = box.kclxx(arguments, environment).out;
    const auto begin = out.find("directory=") + 10;
    return out.substr(begin, out.find('\n', begin) - begin);
  };
  CHECK(directory_of({"--directory", "here"}, {"KCLXX_LOCAL_DIRECTORY=/there"}) ==
        (box / "here").string());
  CHECK(directory_of({}, {"KCLXX_LOCAL_DIRECTORY=/there"}) == "/there");
  CHECK(directory_of({}, {"XDG_STATE_HOME=/state"}) == "/state/kclxx/local");
  CHECK(directory_of({}, {"XDG_STATE_HOME=state"}) == (box / ".local/state/kclxx/local").string());
}

TEST_CASE("options go to the program under their own names, and the file as its input", "[local]") {
  const local_box box;
  box.write("lines", "one\ntwo\n");
  const auto nothing = box.kclxx({"local", "put", "words", "lines"});
  CHECK(nothing.status == 5);
  CHECK(contains(nothing.err, "nothing runs in " + (box / ".local/state/kclxx/local").string()));
  CHECK_FALSE(std::filesystem::exists(box / "asked"));  // nothing was fetched for it
  box.write(".local/state/kclxx/local/state.json", "{}");
  const auto put = box.kclxx({"local", "put", "words", "lines", "--partition-key", "a=b"},
                             {"NODE_PATH=/of-others"});
  CHECK(put.status == 0);
  CHECK(put.out.ends_with("\nstream=words\npartition-key=a=b\npackages=\none\ntwo\n"));

  const auto start = box.kclxx({"local", "start"});
  CHECK(contains(start.out, "\njava=" + (box / "bin/java").string() + "\ndynamodb-jars=" +
                                (box / ".cache/kclxx/dynamodb-local-").string()));
  CHECK(contains(start.out, "\ndynamodb-class-path=" + (box / ".cache/kclxx/dynamodb").string()));
  CHECK(contains(start.out, "\npackages=" + (box / ".cache/kclxx/local-packages-").string()));
  CHECK(std::filesystem::is_directory(box / ".local/state/kclxx/local"));
}

TEST_CASE("leases makes a table of what Node.js reads, and leaves with its status",
          "[local][leases]") {
  const local_box box;
  box.write(".local/state/kclxx/local/state.json", "{}");
  const auto leases = [&](const std::string& counter,
                          const std::vector<std::string>& options = {}) {
    box.program(
        "bin/node",
        R"(echo '{"stream": "words", "Shards": [{"ShardId": "shardId-0"}], "kclxxBacklogs": {"shardId-1": {"records": 3, )"
        R"("oldest": 1500}}, "Items": [{"leaseKey": {"S": "shardId-1"}, )"
        R"("checkpoint": {"S": "LATEST"}, "leaseCounter": {"N": ")" +
            counter + "\"}}]}'; echo \"$*\" >> $HOME/asked; exit $(wc -l < $HOME/asked)\n");
    std::vector<std::string> command{"local", "leases", "my-app"};
    command.insert(command.end(), options.begin(), options.end());
    return box.kclxx(command);
  };
  const auto table = leases("7");
  CHECK(table.status == 1);
  CHECK(table.out.starts_with("application my-app, stream words, at "));
  CHECK(contains(table.out,
                 "shard      owner  counter  moves  checkpoint  age  lag  oldest  state\n"
                 "shardId-1  -            7  -      LATEST/0      -    3   1.5 s  free: "));
  CHECK(contains(table.out, "stuck: rows that the stream words cannot have: shardId-1, "));
  CHECK(box.read("asked").ends_with(" application=my-app\n"));
  const auto tsv = leases("8", {"--tsv", "--stream", "words"});
  CHECK(tsv.status == 2);
  CHECK(tsv.out ==
        "shard\tsequence_number\tsub_sequence_number\towner\tcounter\tlag\toldest_milliseconds\t"
        "moves\tage_seconds\tstate\tcause\n"
        "shardId-1\tLATEST\t0\t-\t8\t3\t1500\t-\t-\tfree\tno worker has it: if none runs, start "
        "one\n");
  const auto garbled = leases("x");
  CHECK(garbled.status != 0);
  CHECK(contains(garbled.err, "kclxx local leases: Items[0]: leaseCounter is not a whole number"));
}

TEST_CASE("run-local passes a signal on to the daemon, and waits for it and for its cleaning up",
          "[new]") {
  const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  CAPTURE(signal);
  const sandbox box;
  REQUIRE(box.kclxx({"new", "clicks"}).status == 0);
  std::filesystem::create_directory(box / "clicks/build");
  const std::string gate = (box / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  box.program("bin/cmake", "exit 0\n");
  box.program("bin/kclxx",
              "echo \"$1 $2\" >> $HOME/asked\n"
              "[ \"$1 $2\" = 'daemon run' ] || exit 0\n"
              "trap 'echo daemon ended >> $HOME/asked; exit 143' TERM\n"
              "echo started > $HOME/gate\n"
              "while :; do sleep 0.01; done\n");
  const forked_copy run = box.start({"clicks/run-local"});
  CHECK(read_file(gate) == "started\n");  // waits for the daemon
  ::kill(run.pid(), signal);
  CHECK(run.wait() == 143);
  CHECK(box.read("asked").ends_with("daemon run\ndaemon ended\nlocal stop\n"));
}

TEST_CASE("a folder that others can change is refused before its state is trusted",
          "[local][folders]") {
  const std::string name = GENERATE("stop", "env", "start");
  CAPTURE(name);
  const folder_command command = [&](const std::string& folder) {
    return std::vector<std::string>{"local", name, "--directory", folder};
  };
  SECTION("the folder") { check_folders_of_others(command); }
  SECTION("in a sticky folder the file") {
    const kept_folder box;
    std::filesystem::permissions(box / "kept", std::filesystem::perms(01777));
    box.check_file_refused(command, "state.json");
  }
}
