// SPDX-License-Identifier: Apache-2.0
#include "tool/local/local_packages.hpp"

#include <string>
#include <system_error>

#include "tool/command_error.hpp"
#include "tool/embedded.hpp"
#include "tool/jar_checksums.hpp"
#include "tool/package_cache.hpp"
#include "tool/package_programs.hpp"
#include "tool/write_file.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

fs::path place_in(const fs::path& cache, std::string_view name) {
  return fs::absolute(cache) / name;
}

bool has_expected_packages(const fs::path& folder) {
  return folder_checksum(folder / "node_modules") == embedded::local_packages_checksum;
}

void write_files(const fs::path& folder, const embedded::folder& what) {
  for (const embedded::file& one : what.files) write_file(folder / one.name, one.text);
}

}  // namespace

fs::path local_program(const fs::path& cache) {
  fs::path place = place_in(cache, embedded::local_program.name);
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
    fetch_with_npm(folder, "a local Kinesis", is_offline);
    if (!is_complete(folder))
      cannot_set_up("npm did not bring " + proof + ", and reported no error");
    if (!has_expected_packages(folder)) {
      cannot_set_up(
          "what npm brought does not have the expected SHA-256 checksum, so nothing was installed");
    }
  };
  fetch_folder({place, is_complete, fill});
  return place / "node_modules";
}

fs::path fetch_dynamodb_local(const fs::path& cache, bool is_offline) {
  fs::path place = place_in(cache, embedded::dynamodb_local.folder);
  const auto is_complete = [](const fs::path& folder) { return has_jar(folder, "DynamoDBLocal-"); };
  const auto fill = [&](const fs::path& folder) {
    fetch_with_maven(folder, embedded::dynamodb_local, "DynamoDB Local", is_offline);
  };
  fetch_folder({place, is_complete, fill});
  return place;
}

void verify_local(const fs::path& cache) {
  const std::string fetch = "kclxx local fetch";
  expect_as_fetched(place_in(cache, embedded::dynamodb_local.folder),
                    embedded::dynamodb_local.checksums, fetch);
  const fs::path packages = place_in(cache, embedded::local_packages.name);
  if (has_expected_packages(packages)) return;
  cannot_set_up(packages.string() +
                " is not as it was fetched; remove the folder, and fetch again: " + fetch);
}

}  // namespace kclxx::tool
