// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <string>
#include <sys/stat.h>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/tool.hpp"
#include "support/trusted_jars.hpp"

using namespace kclxx::test;

namespace {

// Notes its arguments and brings one jar.
const std::string maven =
    "echo \"$@\" >> $HOME/asked\n"
    "echo noise of Maven\n"
    "for a; do case $a in -DoutputDirectory=*) to=${a#*=};; esac; done\n"
    "cp $to/pom.xml $HOME/pom.xml\n"
    "echo jar > $to/amazon-kinesis-client-multilang-0.jar\n"
    "echo jar > $to/amazon-kinesis-client-1.0.jar\n";

std::string one_line(const std::string& text) {
  REQUIRE(text.find('\n') == text.size() - 1);
  return text.substr(0, text.size() - 1);
}

/// With a Java that is too old for a class archive, and Maven.
struct fetching : sandbox {
  fetching() {
    java("11.0.1", "exit 0\n");
    program("bin/mvn", maven);
  }
};

}  // namespace

TEST_CASE("fetch prints the folder alone, and asks Maven only once", "[daemon][fetch]") {
  const fetching box;
  expect_jars(box);
  const auto first = box.kclxx({"daemon", "fetch"});
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  const std::string folder = one_line(first.out);
  CHECK(folder.starts_with((box / ".cache/kclxx/kcl3-").string()));
  CHECK(contains(first.err, "noise of Maven"));
  CHECK(contains(box.read("pom.xml"), "amazon-kinesis-client-multilang"));
  const std::string asked = box.read("asked");
  CHECK(contains(one_line(asked), "-q -B -C -Dstyle.color=never -f "));
  CHECK(contains(asked, " dependency:copy-dependencies -DincludeScope=runtime "));

  const auto second = box.kclxx({"daemon", "fetch"});
  CHECK(second.status == 0);
  CHECK(second.out == first.out);
  CHECK(second.err.empty());
  CHECK(box.read("asked") == asked);
  CHECK(box.list(".cache/kclxx").size() == 1);
  struct stat status {};
  REQUIRE(::stat(folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0755U);
}

TEST_CASE("each major version has its own folder, and the cache can be named", "[daemon][fetch]") {
  const fetching box;
  expect_jars(box);
  for (const char* kcl : {"1", "2", "3"}) {
    const auto fetched = box.kclxx({"daemon", "fetch", "--kcl", kcl, "--cache", "jars"});
    CHECK(fetched.status == 0);
    CHECK(fetched.out.starts_with((box / (std::string("jars/kcl") + kcl + "-")).string()));
  }
  CHECK(box.list("jars").size() == 3);
  const auto xdg = box.kclxx({"daemon", "fetch"}, {"XDG_CACHE_HOME=" + (box / "xdg").string()});
  CHECK(xdg.out.starts_with((box / "xdg/kclxx/kcl3-").string()));
  CHECK(box.kclxx({"daemon", "fetch", "--kcl", "4"}).status == 2);
}

TEST_CASE("Maven gets the user's arguments, and -o when offline", "[daemon][fetch]") {
  const fetching box;
  box.program("bin/mvn", "env | grep ^MAVEN_ARGS\n" + maven);
  expect_jars(box);
  const auto fetched = box.kclxx({"daemon", "fetch", "--offline"}, {"MAVEN_ARGS=-s  my.xml -Dx=1"});
  CHECK(fetched.status == 0);
  CHECK(contains(box.read("asked"), "-q -B -C -Dstyle.color=never -s my.xml -Dx=1 -o -f "));
  CHECK_FALSE(contains(fetched.err, "MAVEN_ARGS"));
}

TEST_CASE("a Maven that fails leaves nothing", "[daemon][fetch]") {
  const fetching box;
  box.program("bin/mvn", maven + "echo no network\nexit 7\n");
  const auto failed = box.kclxx({"daemon", "fetch"});
  CHECK(failed.status == 5);
  CHECK(failed.out.empty());
  CHECK(contains(failed.err, "no network"));
  CHECK(contains(failed.err, "kclxx daemon fetch: mvn failed with status 7"));
  CHECK(box.list(".cache/kclxx").empty());
}

TEST_CASE("a jar whose content is not the published one is named, and nothing is installed",
          "[daemon][fetch]") {
  const fetching box;
  box.program("bin/mvn", maven + "while read -r hash name; do echo other > $to/$name; done < " +
                             KCLXX_SOURCE_DIR "/src/tool/daemon/jars/kcl1/SHA256SUMS\n");
  const auto refused = box.kclxx({"daemon", "fetch", "--kcl", "1"});
  CHECK(refused.status == 5);
  CHECK(
      contains(refused.err,
               "\nkclxx daemon fetch: amazon-kinesis-client-1.15.3.jar does not have the expected "
               "SHA-256 checksum"));
  CHECK(refused.out.empty());
  CHECK(box.list(".cache/kclxx").empty());
}

TEST_CASE("no file may be missing, and no other is taken", "[daemon][fetch]") {
  struct wrong {
    std::string edit;
    std::string message;
  };
  const auto& [edit, message] = GENERATE(
      wrong{"sed '/ commons-codec/d'", "mvn did not bring commons-codec-1.15.jar"},
      wrong{"sed '$a 00  own.jar'", "mvn brought own.jar, which is not among the expected files"});
  const fetching box;
  expect_jars(box, edit);
  const auto refused = box.kclxx({"daemon", "fetch", "--kcl", "1"});
  CHECK(refused.status == 5);
  CHECK(contains(refused.err, "kclxx daemon fetch: " + message));
  CHECK(box.list(".cache/kclxx").empty());
}

TEST_CASE("jars that were changed since they were fetched are not used", "[daemon][fetch][run]") {
  const fetching box;
  box.write("a.properties", "executableName=/bin/true\n");
  expect_jars(box);
  REQUIRE(box.kclxx({"daemon", "fetch"}).status == 0);
  CHECK(box.kclxx({"daemon", "run", "a.properties"}).status == 0);
  expect_jars(box, "sed '/ commons-codec/s/^..../beef/'");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"daemon", "run", "a.properties"},
        std::vector<std::string>{"daemon", "print-command", "a.properties"},
        std::vector<std::string>{"daemon", "fetch"}}) {
    const auto refused = box.kclxx(command);
    CHECK(refused.status == 5);
    CHECK(refused.out.empty());
    CHECK(contains(refused.err, "/.cache/kclxx/kcl3-"));
    CHECK(contains(refused.err, " is not as it was fetched: commons-codec-"));
    CHECK(contains(refused.err,
                   " was changed; remove the folder, and fetch again: kclxx daemon fetch --kcl 3"));
  }
}

TEST_CASE("of another version the checksums are recorded, and compared from then on",
          "[daemon][fetch][run]") {
  const fetching box;
  // There is no daemon of this version.
  box.program("bin/mvn",
              "for a; do case $a in -DoutputDirectory=*) to=${a#*=};; esac; done\n"
              "grep -q '<multilang.version>3.2.1<' $to/pom.xml && touch $to/half &&\n"
              "  echo '[ERROR] Could not find artifact x' && exit 1\n" +
                  maven);
  box.write("a.properties", "executableName=/bin/true\n");
  const auto fetched = box.kclxx({"daemon", "fetch", "--kcl", "3.2.1"});
  CAPTURE(fetched.err);
  REQUIRE(fetched.status == 0);
  const std::string folder = one_line(fetched.out);
  CHECK(folder.starts_with((box / ".cache/kclxx/kcl3-3.2.1-").string()));
  CHECK(contains(fetched.err, "There is no daemon 3.2.1; the tested one is fetched."));
  CHECK_FALSE(contains(fetched.err, "[ERROR]"));
  CHECK(contains(fetched.err, "KCL 3.2.1 with the daemon 3.1.3 was not tested with kclxx"));
  CHECK(contains(fetched.err, folder + "/SHA256SUMS and compared before each run"));
  const std::string pom = box.read("pom.xml");
  CHECK(contains(pom,
                 "<artifactId>amazon-kinesis-client-pom</artifactId>\n"
                 "    <version>3.2.1</version>"));
  CHECK(contains(pom, "<core.version>3.2.1<"));
  CHECK(contains(pom, "<multilang.version>3.1.3<"));
  CHECK_FALSE(std::filesystem::exists(folder + "/half"));

  const std::vector<std::string> run{"daemon", "run", "a.properties", "--kcl", "3.2.1"};
  CHECK(box.kclxx(run).status == 0);
  const std::filesystem::path hidden = folder + "/.not fetched.jar";
  std::ofstream(hidden) << "other";
  const auto with_hidden = box.kclxx(run);
  CHECK(with_hidden.status == 5);
  CHECK(contains(with_hidden.err, " is not as it was fetched: .not fetched.jar was added"));
  std::filesystem::remove(hidden);
  const std::filesystem::path jar = folder + "/amazon-kinesis-client-1.0.jar";
  std::ofstream(jar) << "other";
  const auto refused = box.kclxx(run);
  CHECK(refused.status == 5);
  CHECK(contains(refused.err,
                 "amazon-kinesis-client-1.0.jar was changed; remove the folder, and "
                 "fetch again: kclxx daemon fetch --kcl 3.2.1\n"));
  // A copy, as in an image, is compared too.
  CHECK(box.kclxx({"daemon", "run", "a.properties", "--jars", folder}).status == 5);
  std::filesystem::remove(folder + "/SHA256SUMS");
  CHECK(box.kclxx({"daemon", "run", "a.properties", "--jars", folder}).status == 0);
}

TEST_CASE("another version can be held against the checksums of an earlier fetch",
          "[daemon][fetch]") {
  const fetching box;
  const auto first = box.kclxx({"daemon", "fetch", "--kcl", "1.15.0", "--cache", "one"});
  REQUIRE(first.status == 0);
  CHECK(contains(box.read("pom.xml"), "<version>1.15.0</version>"));
  const std::string sums = one_line(first.out) + "/SHA256SUMS";
  const std::vector<std::string> again{"daemon",  "fetch", "--kcl",       "1.15.0",
                                       "--cache", "two",   "--checksums", sums};
  const auto same = box.kclxx(again);
  CHECK(same.status == 0);
  CHECK_FALSE(contains(same.err, "not tested"));
  std::filesystem::remove_all(box / "two");
  box.program("bin/mvn", maven + "echo more >> $to/amazon-kinesis-client-1.0.jar\n");
  const auto other = box.kclxx(again);
  CHECK(other.status == 5);
  CHECK(contains(other.err,
                 "kclxx daemon fetch: amazon-kinesis-client-1.0.jar does not have the "
                 "expected SHA-256 checksum"));
  CHECK(box.list("two").empty());
}

TEST_CASE("another daemon is taken only when Maven has said that there is none",
          "[daemon][fetch]") {
  const fetching box;
  box.program("bin/mvn", "echo '[ERROR] Connection refused'\nexit 1\n");
  const auto failed = box.kclxx({"daemon", "fetch", "--kcl", "3.2.1"});
  CHECK(failed.status == 5);
  CHECK(contains(failed.err, "[ERROR] Connection refused"));
  CHECK(contains(failed.err, "kclxx daemon fetch: mvn failed with status 1"));
  CHECK_FALSE(contains(failed.err, "tested one"));
  const auto offline = box.kclxx({"daemon", "fetch", "--kcl", "3.2.1", "--offline"});
  CHECK(offline.status == 5);
  CHECK(contains(offline.err, "has not all of KCL 3.2.1 with the daemon 3.2.1"));
  CHECK(box.list(".cache/kclxx").empty());
}

TEST_CASE("checksums that cannot be read are named before anything is fetched", "[daemon][fetch]") {
  const fetching box;
  const auto failed = box.kclxx({"daemon", "fetch", "--kcl", "3.2.1", "--checksums", "absent"});
  CHECK(failed.status == 5);
  CHECK(contains(failed.err, "absent cannot be read"));
  CHECK_FALSE(std::filesystem::exists(box / "asked"));
}

TEST_CASE("a version is a major one or has three numbers", "[daemon][fetch]") {
  const fetching box;
  for (const char* wrong : {"4", "0.1.2", "3.5", "3.5.1.2", "3.x.1", "", "3.5.1-rc"}) {
    const auto refused = box.kclxx({"daemon", "fetch", "--kcl", wrong});
    CHECK(refused.status == 2);
    CHECK(contains(refused.err, "is neither 1, 2 or 3 nor a version like 3.2.0"));
  }
  // The tested one by its number.
  box.program("bin/mvn", maven);
  expect_jars(box);
  const auto named = box.kclxx({"daemon", "fetch", "--kcl", "3.5.1"});
  CHECK(named.out == box.kclxx({"daemon", "fetch", "--kcl", "3"}).out);
}

TEST_CASE(
    "a fetch that is killed leaves a partial folder, which a later one removes, complete or not",
    "[daemon][fetch]") {
  const fetching box;
  expect_jars(box);
  // Maven kills the tool in the middle of its work, and itself continues to the end of its own.
  box.program("bin/mvn", maven + "mkfifo $HOME/killed\nkill -KILL $PPID\ncat $HOME/killed\n");
  CHECK(box.start({KCLXX_TOOL, "daemon", "fetch"}).wait() == 128 + SIGKILL);
  REQUIRE(box.list(".cache/kclxx").size() == 1);
  const std::string partial = box.list(".cache/kclxx").front();
  CHECK(partial.starts_with(".kcl3-"));

  // As long as that Maven runs, what it fills is left alone.
  box.program("bin/mvn", maven);
  const auto beside = box.kclxx({"daemon", "fetch"});
  CHECK(beside.status == 0);
  CHECK(box.list(".cache/kclxx").size() == 2);

  std::ofstream(box / "killed") << "go on" << std::flush;
  // It is gone when its lock is; this opens when the lock is free.
  const std::string folder = (box / (".cache/kclxx/" + partial)).string();
  CHECK(box.start({"flock", folder, "true"}).wait() == 0);
  const auto next = box.kclxx({"daemon", "fetch"});
  CHECK(next.status == 0);
  CHECK(next.err.empty());  // what is complete is not fetched again
  CHECK(box.list(".cache/kclxx").size() == 1);
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
  expect_jars(box);
  box.write("file", "");
  const auto failed = box.kclxx({"daemon", "fetch", "--cache", "file"});
  CHECK(failed.status == 5);
  CHECK(contains(one_line(failed.err), "file cannot be made: "));
}

namespace {

// Archives what it is told to, and notes it. As Java it reports on stdout and stderr.
const std::string archiving_java =
    "for a; do case $a in -XX:ArchiveClassesAtExit=*) to=${a#*=};; -Xshare:on) probed=1;; esac; "
    "done\n"
    "[ -z \"$probed\" ] || exit 0\n"
    "[ -z \"$to\" ] || { echo \"$@\" >> $HOME/trained; env >> $HOME/trained; echo classes > $to; "
    "}\n"
    "echo java.net.ConnectException: refused\n"
    "for a; do echo \"arg: $a\"; done\n";

std::string archive_of(const std::string& jars) { return jars + ".classes/classes.jsa"; }

}  // namespace

TEST_CASE("fetch has Java archive the daemon's classes once, and run uses them",
          "[daemon][fetch][run][class_archive]") {
  const sandbox box;
  const auto& [kcl, main] =
      GENERATE(std::pair{"1", "com.amazonaws.services.kinesis.multilang.MultiLangDaemon"},
               std::pair{"3", "software.amazon.kinesis.multilang.MultiLangDaemon"});
  box.java("17.0.1", archiving_java);
  box.program("bin/mvn", maven);
  box.write("a.properties", "executableName=/bin/true\n");
  expect_jars(box);
  const std::vector<std::string> fetch{"daemon", "fetch", "--kcl", kcl};
  const auto fetched = box.kclxx(fetch, {"AWS_PROFILE=mine", "JAVA_TOOL_OPTIONS=-Xshare:off"});
  CAPTURE(fetched.err);
  REQUIRE(fetched.status == 0);
  const std::string jars = one_line(fetched.out);
  CHECK(contains(fetched.err, "Java archives the daemon's classes"));
  const std::string trained = box.read("trained");
  CHECK(contains(trained, " -cp " + jars + "/* "));
  CHECK(contains(trained, main));
  CHECK_FALSE(contains(trained, "AWS_PROFILE"));
  CHECK_FALSE(contains(trained, "JAVA_TOOL_OPTIONS"));
  CHECK(box.list(jars + ".classes").size() == 2);

  CHECK(box.kclxx(fetch).err.empty());
  CHECK(box.read("trained") == trained);

  const auto run = box.kclxx({"daemon", "run", "a.properties", "--kcl", kcl});
  CHECK(contains(run.out, "arg: -XX:SharedArchiveFile=" + archive_of(jars) + "\n"));
  CHECK_FALSE(contains(run.err, "archive"));
  const auto printed = box.kclxx({"daemon", "print-command", "a.properties", "--kcl", kcl});
  CHECK(contains(printed.out, "-XX:SharedArchiveFile="));
  const auto own = box.kclxx({"daemon", "run", "a.properties", "--kcl", kcl, "--", "-Xshare:off"});
  CHECK_FALSE(contains(own.out, "-XX:SharedArchiveFile="));
  CHECK_FALSE(contains(own.err, "archive"));
}

TEST_CASE("an archive that does not fit is not used, with one line of information, and made anew",
          "[daemon][fetch][run][class_archive]") {
  const sandbox box;
  box.java("17.0.1", archiving_java);
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  box.write("a.properties",
            "executableName=/bin/true\napplicationName=app\nstreamName=a\nregionName=eu-central-1\n"
            "AwsCredentialsProvider=DefaultCredentialsProvider\nretrievalMode=POLLING\n"
            "initialPositionInStream=LATEST\nshutdownGraceMillis=5000\n"
            "logWarningForTaskAfterMillis=60000\n");
  const std::vector<std::string> run{"daemon", "run", "a.properties", "--jars", "jars"};
  const auto runs_without = [&](const std::string& why) {
    const auto started = box.kclxx(run);
    CHECK(started.status == 0);
    CHECK_FALSE(contains(started.out, "SharedArchiveFile"));
    CHECK(one_line(started.err) ==
          "kclxx daemon: " + why +
              ", so Java starts without one; to make it: kclxx daemon fetch --kcl 3 --jars jars");
  };
  const auto fetch_and_run = [&] {
    REQUIRE(box.kclxx({"daemon", "fetch", "--jars", "jars/"}).status == 0);
    const auto started = box.kclxx(run);
    CHECK(contains(started.out, "arg: -XX:SharedArchiveFile="));
    CHECK(started.err.empty());
  };
  runs_without("there is no class archive for these jars");
  fetch_and_run();
  const std::string other = "the class archive is for another Java or other jars, or was cut off";
  SECTION("another Java") { box.java("17.0.2", archiving_java); }
  SECTION("another jar") { box.write("jars/another.jar", ""); }
  SECTION("a jar of another size") {
    box.write("jars/amazon-kinesis-client-multilang-0.jar", "more");
  }
  SECTION("an archive that was cut off") {
    std::filesystem::resize_file(archive_of((box / "jars").string()), 3);
  }
  SECTION("no archive") { std::filesystem::remove(archive_of((box / "jars").string())); }
  SECTION("no note of what it is for") { std::filesystem::remove(box / "jars.classes/made-for"); }
  runs_without(other);
  fetch_and_run();
}

TEST_CASE("a folder at the archive's place that is not kclxx's is left alone",
          "[daemon][fetch][class_archive]") {
  const sandbox box;
  box.java("17.0.1", archiving_java);
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  std::filesystem::create_directory(box / "jars.classes");
  box.write("jars.classes/Mine.class", "mine");
  const auto fetched = box.kclxx({"daemon", "fetch", "--jars", "jars"});
  CHECK(fetched.status == 0);
  CHECK(contains(one_line(fetched.err), "no class archive was made: "));
  CHECK(contains(fetched.err, "jars.classes, the place of the class archive, has Mine.class"));
  CHECK(box.list("jars.classes").size() == 1);
}

TEST_CASE("without an archive a fetch has succeeded all the same",
          "[daemon][fetch][class_archive]") {
  const sandbox box;
  struct failure {
    std::string java;
    std::string line;
  };
  const auto& [java, line] =
      GENERATE(failure{"exit 1\n", "Java did not make it"},
               failure{"for a; do case $a in -XX:ArchiveClassesAtExit=*) echo a > ${a#*=};; "
                       "-Xshare:on) printf 'a\\nreason\\n'; exit 1;; esac; done\n",
                       "Java does not accept it: a reason\n"});
  box.java("21", java);
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  const auto fetched = box.kclxx({"daemon", "fetch", "--jars", "jars"});
  CHECK(fetched.status == 0);
  CHECK(one_line(fetched.out) == (box / "jars").string());
  CHECK(contains(fetched.err, "kclxx daemon fetch: no class archive was made: " + line));
  CHECK_FALSE(std::filesystem::exists(box / "jars.classes"));
}

TEST_CASE("a Java before 17 gets no archive, and nothing is said", "[daemon][class_archive]") {
  const sandbox box;
  const std::string version = GENERATE("1.8.0_432", "11.0.25", "16.0.2");
  box.java(version, archiving_java);
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  const auto fetched = box.kclxx({"daemon", "fetch", "--jars", "jars"});
  CHECK(fetched.status == 0);
  CHECK(fetched.err.empty());
  CHECK_FALSE(std::filesystem::exists(box / "trained"));
}

TEST_CASE("a Java without a release file is asked for its version", "[daemon][class_archive]") {
  const sandbox box;
  box.program("bin/java",
              "[ \"$*\" != -version ] || { echo 'openjdk version \"17.0.9\"' >&2; exit; }\n" +
                  archiving_java);
  box.write("jars/amazon-kinesis-client-multilang-0.jar", "");
  CHECK(box.kclxx({"daemon", "fetch", "--jars", "jars"}).status == 0);
  CHECK(std::filesystem::exists(box / "jars.classes/classes.jsa"));
}

TEST_CASE("a folder without the daemon's jar is named", "[daemon][fetch]") {
  const sandbox box;
  box.write("jars/other.jar", "");
  const auto refused = box.kclxx({"daemon", "fetch", "--jars", "jars"});
  CHECK(refused.status == 5);
  CHECK(one_line(refused.err) ==
        "kclxx daemon fetch: the jars of KCL 3.x are not in " + (box / "jars").string());
}
