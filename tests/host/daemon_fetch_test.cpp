// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "host/trusted_packages.hpp"
#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;
namespace fs = std::filesystem;

namespace {

// Notes its arguments and brings what stands for jars.
const std::string maven = "echo \"$@\" >> $HOME/asked\necho noise of Maven\n" + bring_jars +
                          "cp $to/pom.xml $HOME/pom.xml\n";

std::string one_line(const std::string& text) {
  REQUIRE(text.find('\n') == text.size() - 1);
  return text.substr(0, text.size() - 1);
}

/// A `jar` that lists a class for each source.
const std::string jar_program =
    "case $1 in\n"
    "  --list) for source in " KCLXX_SOURCE_DIR
    "/src/host/java/*.java; do echo x/$(basename $source .java).class; done ;;\n"
    "  *) echo classes > $3 ;;\n"
    "esac\n";

/// With Java and Maven.
struct fetching : sandbox {
  fetching() {
    program("bin/java", "for a; do echo \"arg: $a\"; done\n");
    program("bin/mvn", maven);
    program("bin/javac", "exit 1\n");  // no JDK
    program("bin/jar", "exit 1\n");
    trust_packages(*this);
    write("a.properties", "executableName=/bin/true\n");
  }
  /// The folder that a fetch prints.
  [[nodiscard]] fs::path fetched(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> command{"daemon", "fetch"};
    command.insert(command.end(), options.begin(), options.end());
    const auto fetch = kclxx(command);
    CAPTURE(fetch.err);
    REQUIRE(fetch.status == 0);
    return one_line(fetch.out);
  }
  void with_jdk() const {
    program("bin/javac",
            "while [ $1 != -d ]; do shift; done\nmkdir $2\necho compiled >> $HOME/asked\n");
    program("bin/jar", jar_program);
  }
  /// The jar that was compiled beside the others.
  static fs::path own_jar(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("kclxx-") && name.ends_with(".jar")) return entry.path();
    }
    FAIL("there is no jar of kclxx in " << folder);
    return {};
  }
  /// What each command that uses the jars says.
  void check_refused(const std::string& what) const {
    const auto refused = kclxx({"daemon", "run", "a.properties"});
    CHECK(refused.status == 5);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, what));
    const auto fetch = kclxx({"daemon", "fetch"});
    CHECK(fetch.status == 5);
    CHECK(fetch.err.starts_with("kclxx daemon fetch: " + what));
  }
};

const std::string jar = "commons-codec-1.17.1.jar";

}  // namespace

TEST_CASE("fetch prints the folder alone, and asks Maven only once", "[daemon][fetch]") {
  const fetching box;
  const auto first = box.kclxx({"daemon", "fetch"});
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  const std::string folder = one_line(first.out);
  CHECK(folder.starts_with((box / ".cache/kclxx/kcl3-").string()));
  CHECK(contains(first.err, "noise of Maven"));
  CHECK(contains(box.read("pom.xml"), "amazon-kinesis-client-multilang"));
  const std::string asked = box.read("asked");
  CHECK(contains(one_line(asked), "-q -B -C -U -Dstyle.color=never -f "));
  CHECK(contains(asked, " dependency:copy-dependencies -DincludeScope=runtime "));

  const auto second = box.kclxx({"daemon", "fetch"});
  CHECK(second.status == 0);
  CHECK(second.out == first.out);
  CHECK(contains(one_line(second.err), "there is no JDK (javac, jar) of Java 9 or newer"));
  CHECK(box.read("asked") == asked);
  CHECK(box.list(".cache/kclxx").size() == 2);  // and the lock
  struct stat status {};
  REQUIRE(::stat(folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0755U);
}

TEST_CASE("each major version has its own folder, and the cache can be named", "[daemon][fetch]") {
  const fetching box;
  for (const char* kcl : {"2", "3"}) {
    const auto fetched = box.kclxx({"daemon", "fetch", "--kcl", kcl, "--cache", "jars"});
    CHECK(fetched.status == 0);
    CHECK(fetched.out.starts_with((box / (std::string("jars/kcl") + kcl + "-")).string()));
  }
  CHECK(box.list("jars").size() == 3);  // and the lock
  const auto xdg = box.kclxx({"daemon", "fetch"}, {"XDG_CACHE_HOME=" + (box / "xdg").string()});
  CHECK(xdg.out.starts_with((box / "xdg/kclxx/kcl3-").string()));
  CHECK(box.kclxx({"daemon", "fetch", "--kcl", "4"}).status == 2);
}

TEST_CASE("Maven gets the user's arguments", "[daemon][fetch]") {
  const fetching box;
  box.program("bin/mvn", "env | grep ^MAVEN_ARGS\n" + maven);
  const auto fetched = box.kclxx({"daemon", "fetch"}, {"MAVEN_ARGS=-s  my.xml -Dx=1"});
  CHECK(fetched.status == 0);
  CHECK(contains(box.read("asked"), "-q -B -C -U -Dstyle.color=never -s my.xml -Dx=1 -f "));
  CHECK_FALSE(contains(fetched.err, "MAVEN_ARGS"));
}

namespace {

/// What makes a folder another one than the published, in sh, and what is said of it.
struct change {
  std::string edit;
  std::string message;
};
const std::vector<change> changes{
    {"echo other > " + jar, jar + " was changed"},
    {"rm " + jar, jar + " is missing"},
    {"echo > own.jar", "own.jar was added"},
    {"echo > .own.jar", ".own.jar was added"},
    {"echo > ' " + jar + "'", " " + jar + " was added"},
    {"mv " + jar + " '" + jar + " '", jar + " is missing"},
    {"mkdir x14.jar", "x14.jar was added"},
    {"rm " + jar + "; mkdir " + jar, jar + " was changed"},
    {"mv " + jar + " ..; ln -s ../" + jar + " .", jar + " was changed"},
};

}  // namespace

TEST_CASE("what Maven brings is exactly the published jars, or nothing is installed",
          "[daemon][fetch]") {
  const auto& [edit, message] = GENERATE_REF(from_range(changes));
  CAPTURE(edit);
  const fetching box;
  box.program("bin/mvn", maven + "cd $to; " + edit + "\n");
  const auto refused = box.kclxx({"daemon", "fetch"});
  CHECK(refused.status == 5);
  CHECK(refused.out.empty());
  CHECK(contains(refused.err, "\nkclxx daemon fetch: what came is not what was expected: " +
                                  message + ", so nothing was installed"));
  for (const std::string& name : box.list(".cache/kclxx")) CHECK_FALSE(contains(name, "kcl3"));
}

TEST_CASE("Java gets the files that were compared, by name, and nothing else of the folder",
          "[daemon][fetch][run]") {
  const fetching box;
  const fs::path folder = box.fetched();
  const auto run = box.kclxx({"daemon", "run", "a.properties"});
  CHECK(run.status == 0);
  const auto begin = run.out.find("arg: -cp\narg: ") + 14;
  const std::string path = run.out.substr(begin, run.out.find('\n', begin) - begin);
  CHECK_FALSE(contains(path, "*"));
  const auto jars = static_cast<std::size_t>(std::count(path.begin(), path.end(), ':')) + 1;
  CHECK(jars == box.list(folder).size() - 1);  // without the checksums
  CHECK(contains(path, (folder / jar).string() + ":"));
}

TEST_CASE("a folder of jars that is not as it was fetched is refused, whatever was done to it",
          "[daemon][fetch][run]") {
  const auto& [edit, message] = GENERATE_REF(from_range(changes));
  CAPTURE(edit);
  const fetching box;
  const std::string folder = box.fetched();
  CHECK(box.kclxx({"daemon", "run", "a.properties"}).status == 0);
  REQUIRE(box.start({"sh", "-c", "cd " + folder + "; " + edit}).wait() == 0);
  box.check_refused(folder + " is not as it was fetched: " + message +
                    "; remove the folder, and fetch again: kclxx daemon fetch --kcl 3\n");
}

TEST_CASE("what others can write is not run, and not filled", "[daemon][fetch][run]") {
  const fetching box;
  const fs::path folder = box.fetched();
  const fs::path cache = folder.parent_path();
  const fs::path what = std::array{cache, folder, folder / jar}.at(GENERATE(0U, 1U, 2U));
  CAPTURE(what.string());
  SECTION("by mode") {
    const auto added = GENERATE(fs::perms::group_write, fs::perms::others_write);
    fs::permissions(what, added, fs::perm_options::add);
    box.check_refused(what.string() +
                      " can be written by other users, who could change what runs: chmod go-w it, "
                      "or name another cache with --cache or XDG_CACHE_HOME\n");
  }
  if (::geteuid() != 0) return;  // only root gives files away
  SECTION("by its owner") {
    REQUIRE(::chown(what.c_str(), 65534, 65534) == 0);
    box.check_refused(what.string() +
                      " belongs to the user 65534, who could change what runs: make it yours "
                      "(chown), or name another cache with --cache or XDG_CACHE_HOME\n");
  }
}

TEST_CASE("a package is no link to somewhere else", "[daemon][fetch][run]") {
  const fetching box;
  const fs::path folder = box.fetched();
  fs::rename(folder, box / "elsewhere");
  fs::create_directory_symlink(box / "elsewhere", folder);
  box.check_refused(folder.string() + " is no folder: remove it\n");
}

TEST_CASE("a folder that --jars names is compared with its own checksums, if it has them",
          "[daemon][fetch][run]") {
  const fetching box;
  fs::rename(box.fetched(), box / "jars");
  const std::vector<std::string> run{"daemon", "run", "a.properties", "--jars", "jars"};
  CHECK(box.kclxx(run).status == 0);
  std::ofstream(box / "jars/own.jar") << "other";
  const auto refused = box.kclxx(run);
  CHECK(refused.status == 5);
  CHECK(contains(one_line(refused.err), "jars is not as it was fetched: own.jar was added"));
  fs::remove(box / "jars/SHA256SUMS");
  fs::create_directory(box / "jars/x14.jar");
  const auto printed = box.kclxx(run);
  CHECK(printed.status == 0);
  CHECK(contains(printed.out, "/jars/own.jar:"));
  CHECK_FALSE(contains(printed.out, "x14.jar"));
  box.write("jars/SHA256SUMS", "beef  " + jar + "\n");
  CHECK(contains(box.kclxx(run).err, "jars/SHA256SUMS has a line that sha256sum does not write"));
}

TEST_CASE("where there is a JDK fetch compiles the reader, and its jar is compared, too",
          "[daemon][fetch][run]") {
  const fetching box;
  box.with_jdk();
  const auto first = box.kclxx({"daemon", "fetch"});
  REQUIRE(first.status == 0);
  CHECK_FALSE(contains(first.err, "JDK"));
  const fs::path folder = one_line(first.out);
  const std::string asked = box.read("asked");
  CHECK(contains(asked, "compiled"));
  const fs::path own = box.own_jar(folder);
  CHECK(box.kclxx({"daemon", "fetch"}).err.empty());
  CHECK(box.read("asked") == asked);
  const auto run = box.kclxx({"daemon", "run", "a.properties"});
  CHECK(run.status == 0);
  CHECK(contains(run.out, own.string()));
  CHECK(box.list(".cache/kclxx").size() == 2);  // and the lock
  std::ofstream(own) << "other";
  box.check_refused(
      folder.string() + " is not as it was fetched: " + own.filename().string() +
      " was changed; remove the folder, and fetch again: kclxx daemon fetch --kcl 3\n");
  fs::remove(own);
  std::ofstream(folder / "kclxx-own.zip") << "other";
  box.check_refused(folder.string() + " is not as it was fetched: ");
}

TEST_CASE("what a killed fetch has left of the jar that it compiles neither runs nor is in the way",
          "[daemon][fetch][run]") {
  const fetching box;
  box.with_jdk();
  const fs::path folder = box.fetched();
  const fs::path own = box.own_jar(folder);
  fs::path sums = own;
  sums.replace_extension(".sha256");
  const bool is_jar_left = GENERATE(true, false);
  CAPTURE(is_jar_left);
  fs::remove(is_jar_left ? sums : own);
  fs::create_directory(box / (".cache/kclxx/." + folder.filename().string() + ".classes.killed"));
  const auto run = box.kclxx({"daemon", "run", "a.properties"});
  CHECK(run.status == 0);
  CHECK_FALSE(contains(run.out, own.string()));
  CHECK(box.fetched() == folder);
  CHECK(contains(box.kclxx({"daemon", "run", "a.properties"}).out, own.string()));
  CHECK(box.list(".cache/kclxx").size() == 2);  // and the lock
}

TEST_CASE("a jar without one of its classes is not installed", "[daemon][fetch]") {
  const fetching box;
  box.with_jdk();
  box.program("bin/jar",
              "case $1 in --list) echo x/PropertiesReader.class;; *) echo classes > $3;; esac\n");
  const auto fetch = box.kclxx({"daemon", "fetch"});
  CHECK(fetch.status == 5);
  CHECK(contains(fetch.err,
                 "left out the class of BatchMessageWriter.java, so nothing was installed"));
  box.program("bin/jar", jar_program);
  CHECK(fs::exists(box.own_jar(box.fetched())));
}

TEST_CASE("two workers of a new machine fetch at once, and one of them compiles",
          "[daemon][fetch]") {
  const fetching box;
  box.with_jdk();
  forked_copy first = box.start({KCLXX_TOOL, "daemon", "fetch"});
  forked_copy second = box.start({KCLXX_TOOL, "daemon", "fetch"});
  const auto first_run = first.result();
  const auto second_run = second.result();
  CAPTURE(first_run.err, second_run.err);
  CHECK(first_run.status == 0);
  CHECK(second_run.status == 0);
  CHECK(first_run.out == second_run.out);
  std::istringstream asked(box.read("asked"));
  int compiled = 0;
  for (std::string line; std::getline(asked, line);) compiled += line == "compiled" ? 1 : 0;
  CHECK(compiled == 1);
  CHECK(contains(box.kclxx({"daemon", "run", "a.properties"}).out, "kclxx-"));
}

TEST_CASE("another version is fetched with the daemon of its own or the tested one, uncompared",
          "[daemon][fetch][run]") {
  const fetching box;
  // There is no daemon of this version.
  box.program("bin/mvn",
              "for a; do case $a in -DoutputDirectory=*) to=${a#*=};; esac; done\n"
              "grep -q '<multilang.version>3.2.1<' $to/pom.xml && touch $to/half &&\n"
              "  echo '[ERROR] Could not find artifact x' && exit 1\n" +
                  maven + "echo jar > $to/amazon-kinesis-client-multilang-0.jar\n");
  const auto fetched = box.kclxx({"daemon", "fetch", "--kcl", "3.2.1"});
  CAPTURE(fetched.err);
  REQUIRE(fetched.status == 0);
  const fs::path folder = one_line(fetched.out);
  CHECK(folder.string().starts_with((box / ".cache/kclxx/kcl3-3.2.1-").string()));
  CHECK(contains(fetched.err, "There is no daemon 3.2.1; the tested one is fetched."));
  CHECK_FALSE(contains(fetched.err, "[ERROR]"));
  const std::string pom = box.read("pom.xml");
  CHECK(contains(pom,
                 "<artifactId>amazon-kinesis-client-pom</artifactId>\n"
                 "    <version>3.2.1</version>"));
  CHECK(contains(pom, "<core.version>3.2.1<"));
  CHECK(contains(pom, "<multilang.version>3.1.3<"));
  CHECK(box.list(folder) == std::vector<std::string>{"amazon-kinesis-client-multilang-0.jar"});
  const std::vector<std::string> run{"daemon", "run", "a.properties", "--kcl", "3.2.1"};
  CHECK(box.kclxx(run).status == 0);
  // All that protects them is who can write them.
  fs::permissions(folder, fs::perms::group_write, fs::perm_options::add);
  CHECK(contains(box.kclxx(run).err, "can be written by other users"));
}

TEST_CASE("another daemon is taken only when Maven has said that there is none",
          "[daemon][fetch]") {
  const fetching box;
  box.program("bin/mvn", "echo '[ERROR] Connection refused'\nexit 1\n");
  const auto failed = box.kclxx({"daemon", "fetch", "--kcl", "3.2.1"});
  CHECK(failed.status == 5);
  CHECK(contains(failed.err, "[ERROR] Connection refused"));
  CHECK(contains(failed.err, "kclxx daemon fetch: mvn failed; see its last lines"));
  CHECK_FALSE(contains(failed.err, "tested one"));
  CHECK(box.list(".cache/kclxx") == std::vector<std::string>{".lock"});
}

TEST_CASE("a version is a major one or has three numbers", "[daemon][fetch]") {
  const fetching box;
  for (const char* wrong :
       {"1", "4", "0.1.2", "1.15.3", "3.5", "3.5.1.2", "3.x.1", "", "3.5.1-rc"}) {
    const auto refused = box.kclxx({"daemon", "fetch", "--kcl", wrong});
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, "is neither 2 or 3 nor a version like 3.2.0"));
  }
  // The tested one by its number.
  box.program("bin/mvn", maven);
  const auto named = box.kclxx({"daemon", "fetch", "--kcl", "3.5.1"});
  CHECK(named.out == box.kclxx({"daemon", "fetch", "--kcl", "3"}).out);
}

TEST_CASE("what a fetch that was killed has left is removed once its Maven is done",
          "[daemon][fetch]") {
  const fetching box;
  // Maven kills the tool in the middle of its work, and itself continues to the end of its own.
  box.program("bin/mvn", maven + "mkfifo $HOME/killed\nkill -KILL $PPID\ncat $HOME/killed\n");
  CHECK(box.start({KCLXX_TOOL, "daemon", "fetch"}).wait() == 128 + SIGKILL);
  CHECK(box.list(".cache/kclxx").size() == 2);  // the lock and what that Maven fills
  box.program("bin/mvn", maven);
  forked_copy next = box.start({KCLXX_TOOL, "daemon", "fetch"});
  std::ofstream(box / "killed") << "go on" << std::flush;
  const auto done = next.result();
  CHECK(done.status == 0);
  CHECK(box.list(".cache/kclxx").size() == 2);
  CHECK(box.fetched() == one_line(done.out));
}

TEST_CASE("a fetch waits for another one, and says for whom", "[daemon][fetch]") {
  const fetching box;
  box.write(".cache/kclxx/.lock", "4711");
  const std::string file = (box / ".cache/kclxx/.lock").string();
  fs::permissions(file, fs::perms(0600));
  const int lock = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  // The line comes before the wait, so that it opens the lock.
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const forked_copy fetch([&] {
    ::dup2(ends[1], 2);
    box.become({KCLXX_TOOL, "daemon", "fetch"});
    return 98;
  });
  ::close(ends[1]);
  std::string line;
  for (char c = 0; ::read(ends[0], &c, 1) == 1 && c != '\n';) line += c;
  CHECK(line == "waiting for process 4711, which has locked " + file);
  ::close(lock);
  while (::read(ends[0], line.data(), line.size()) > 0) {
  }
  CHECK(fetch.wait() == 0);
  ::close(ends[0]);
}

TEST_CASE("a lock that others can take is none", "[daemon][fetch]") {
  const fetching box;
  // A user who can read the folder can lock it with flock.
  const fs::path cache = box / ".cache/kclxx";
  fs::create_directories(cache);
  const int foreign = ::open(cache.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(::flock(foreign, LOCK_EX) == 0);
  const fs::path folder = box.fetched();
  CHECK(box.kclxx({"daemon", "run", "a.properties"}).status == 0);
  ::close(foreign);
  struct stat status {};
  REQUIRE(::stat((cache / ".lock").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0600U);
  fs::remove_all(folder);
  fs::permissions(cache / ".lock", fs::perms(0644));
  const auto refused = box.kclxx({"daemon", "fetch"});
  CHECK(refused.status == 5);
  CHECK(contains(one_line(refused.err), ".lock is not a file of yours alone: remove it"));
}

TEST_CASE("a fetch that is told to end ends Maven first", "[daemon][fetch]") {
  const fetching box;
  const std::string gate = (box / "gate").string();
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  box.program("bin/mvn",
              "trap 'echo ended >> $HOME/asked; exit 143' TERM\n"
              "echo started > $HOME/gate\n"
              "while :; do sleep 0.01; done\n");
  const std::string version = GENERATE("3", "3.2.1");
  const forked_copy fetch = box.start({KCLXX_TOOL, "daemon", "fetch", "--kcl", version});
  CHECK(read_file(gate) == "started\n");  // waits for Maven
  ::kill(fetch.pid(), SIGTERM);
  CHECK(fetch.wait() == 128 + SIGTERM);
  CHECK(box.read("asked") == "ended\n");
}

TEST_CASE("a cache that cannot be made is named", "[daemon][fetch]") {
  const fetching box;
  box.write("file", "");
  const auto failed = box.kclxx({"daemon", "fetch", "--cache", "file"});
  CHECK(failed.status == 5);
  CHECK(contains(one_line(failed.err), "file cannot be made: "));
}
