// SPDX-License-Identifier: Apache-2.0
#include "tool/local/local_packages.hpp"

#include <string>
#include <system_error>

#include "tool/command.hpp"
#include "tool/daemon/package_cache.hpp"
#include "tool/daemon/package_programs.hpp"
#include "tool/embedded.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

fs::path place_in(const fs::path& cache, std::string_view name) {
  return fs::absolute(cache) / name;
}

void write_files(const fs::path& folder, const embedded::folder& what) {
  for (const embedded::file& one : what.files) write_file(folder / one.name, one.text);
}

}  // namespace

fs::path local_program(const fs::path& cache) {
  const fs::path place = place_in(cache, embedded::local_program.name);
  const auto is_complete = [](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / "local.js", error);
  };
  fetch_folder({place, is_complete,
                [](const fs::path& folder) { write_files(folder, embedded::local_program); }});
  return place;
}

fs::path fetch_local_packages(const fs::path& cache, bool is_offline) {
  const fs::path place = place_in(cache, embedded::local_packages.name);
  const std::string proof = "node_modules/kinesis-local/main.js";
  const auto is_complete = [&](const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / proof, error);
  };
  const auto fill = [&](const fs::path& folder) {
    write_files(folder, embedded::local_packages);
    fetch_with_npm(folder, "a local Kinesis and the AWS clients", is_offline);
    if (!is_complete(folder))
      cannot_set_up("npm did not bring " + proof + ", and reported no error");
  };
  fetch_folder({place, is_complete, fill});
  return place / "node_modules";
}

fs::path fetch_dynamodb_local(const fs::path& cache, bool is_offline) {
  const fs::path place = place_in(cache, embedded::dynamodb_local.folder);
  const auto is_complete = [](const fs::path& folder) { return has_jar(folder, "DynamoDBLocal-"); };
  const auto fill = [&](const fs::path& folder) {
    fetch_with_maven(folder, embedded::dynamodb_local, "DynamoDB Local", is_offline);
  };
  fetch_folder({place, is_complete, fill});
  return place;
}

}  // namespace kclxx::tool
