// SPDX-License-Identifier: Apache-2.0
#include "unit/architecture/include_direction.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/text.hpp"

namespace kclxx::test {

namespace {

bool is_allowed(const std::string& path, const std::string& header) {
  return include_violations(path, "#include " + header + "\n").empty();
}

std::vector<std::string> violations_in(const std::filesystem::path& project,
                                       const std::string& folder) {
  std::vector<std::string> result;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(project / folder)) {
    const auto extension = entry.path().extension();
    if (extension != ".hpp" && extension != ".cpp") continue;
    const auto path = std::filesystem::relative(entry.path(), project).generic_string();
    if (path.starts_with("src/tool/new/templates/")) continue;  // sources of its users' projects
    ++count;
    for (auto& violation : include_violations(path, read_file(entry.path())))
      result.push_back(std::move(violation));
  }
  if (count == 0) result.push_back(folder + ": no source files found");
  return result;
}

}  // namespace

TEST_CASE("every include of the library goes the way of the architecture", "[architecture]") {
  for (const char* folder : {"include/kclxx", "src"}) {
    CHECK(violations_in(KCLXX_SOURCE_DIR, folder) == std::vector<std::string>{});
  }
}

TEST_CASE("every rule about includes is for a file that exists", "[architecture]") {
  std::vector<std::string> files;
  for (const char* folder : {"include", "src"}) {
    const auto root = std::filesystem::path(KCLXX_SOURCE_DIR) / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      files.push_back(std::filesystem::relative(entry.path(), KCLXX_SOURCE_DIR).generic_string());
    }
  }
  for (const std::string_view path : layer_paths()) {
    CAPTURE(path);
    CHECK(std::any_of(files.begin(), files.end(),
                      [path](const std::string& file) { return file.starts_with(path); }));
  }
}

TEST_CASE("public headers show the standard library and each other, nothing else",
          "[architecture]") {
  const std::string path = "include/kclxx/run.hpp";
  CHECK(is_allowed(path, "<functional>"));
  CHECK(is_allowed(path, "<kclxx/error.hpp>"));
  for (const char* header : {"<boost/asio.hpp>", "<nlohmann/json.hpp>", "<simdjson.h>",
                             "<unistd.h>", "\"io/signals.hpp\"", "\"error.hpp\""}) {
    CAPTURE(header);
    CHECK_FALSE(is_allowed(path, header));
  }
}

TEST_CASE("a command of the tool includes no other command, and what they share includes none",
          "[architecture]") {
  const std::string path = "src/tool/generate/generate_command.cpp";
  for (const char* header :
       {"\"tool/generate/generated_shards.hpp\"", "\"tool/command.hpp\"",
        "\"tool/process/cancellation.hpp\"", "\"tool/transcript/entry.hpp\""}) {
    CAPTURE(header);
    CHECK(is_allowed(path, header));
  }
  CHECK_FALSE(is_allowed(path, "\"tool/replay/faults.hpp\""));
  CHECK_FALSE(is_allowed("src/tool/package_cache.cpp", "\"tool/daemon/daemon_jars.hpp\""));
  CHECK_FALSE(is_allowed("src/tool/process/spawn.cpp", "\"tool/check/rule.hpp\""));
  CHECK(is_allowed("src/tool/main.cpp", "\"tool/check/rule.hpp\""));
}

TEST_CASE("an include cannot hide", "[architecture]") {
  const std::string path = "src/kclxx/io/reactor.cpp";
  CHECK_FALSE(include_violations(path, "  #  include   <simdjson.h>  // why\n").empty());
  CHECK_FALSE(include_violations(path, "#include<simdjson.h>").empty());
  CHECK_FALSE(include_violations(path, "#include HEADER\n").empty());
  CHECK_FALSE(include_violations(path, "#include \"io/../session/session.hpp\"\n").empty());
  CHECK(include_violations(path, "// #include <simdjson.h>\n").empty());
  CHECK(include_violations("src/kclxx/io/a.cpp",
                           "#include <simdjson.h>\n#include \"protocol/a.hpp\"\n") ==
        std::vector<std::string>{
            "src/kclxx/io/a.cpp: simdjson.h: is not for this layer",
            "src/kclxx/io/a.cpp: protocol/a.hpp: is a layer that this one must not "
            "know"});
}

TEST_CASE("a new folder needs a rule of its own", "[architecture]") {
  CHECK_FALSE(include_violations("src/utilities/everything.cpp", "").empty());
}

}  // namespace kclxx::test
