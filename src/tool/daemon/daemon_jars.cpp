// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/daemon_jars.hpp"

#include <iostream>
#include <string>
#include <string_view>
#include <system_error>

#include <boost/algorithm/string/replace.hpp>

#include "tool/atomic_file.hpp"
#include "tool/command_error.hpp"
#include "tool/jar_checksums.hpp"
#include "tool/package_cache.hpp"
#include "tool/package_programs.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

std::string with_version(std::string_view pom, std::string_view tested, std::string_view wanted) {
  return boost::replace_all_copy(std::string(pom), ">" + std::string(tested) + "<",
                                 ">" + std::string(wanted) + "<");
}

void empty_folder(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
}

/// A core of another version than the tested one, under the daemon of the same version if there is
/// one: of the daemon fewer versions are published. Gives the daemon's version.
std::string bring_other_version(const fs::path& folder, const jar_request& request) {
  const kcl_choice& kcl = request.kcl;
  const kcl_parts tested = tested_parts(kcl.which);
  const std::string pom = with_version(jars_of(kcl.which).pom, tested.core, kcl.core);
  std::string output;
  int status = 0;
  const auto bring = [&](const std::string& version) {
    const std::string what = "KCL " + kcl.core + " with the daemon " + version;
    status = run_maven(folder, with_version(pom, tested.daemon, version), what, request.is_offline,
                       &output);
    return version;
  };
  std::string daemon = bring(kcl.core);
  // Any other failure, as of a mirror or offline, does not tell which daemons there are.
  if (status != 0 && kcl.which != kcl_version::kcl1 &&
      output.find("Could not find artifact") != std::string::npos) {
    std::cerr << "There is no daemon " << kcl.core << "; the tested one is fetched." << std::endl;
    empty_folder(folder);
    daemon = bring(std::string(tested.daemon));
  }
  std::cerr << output;
  if (status != 0 && request.is_offline) {
    cannot_set_up("Maven's local repository has not all of KCL " + kcl.core + " with the daemon " +
                  daemon + "; which daemons there are is not known offline");
  }
  expect_maven_success(status, request.is_offline);
  return daemon;
}

void fill_with_other_version(const fs::path& folder, const fs::path& place,
                             const jar_request& request) {
  std::string checksums;
  if (!request.checksums.empty()) checksums = text_of_file(request.checksums);  // before a download
  const std::string daemon = bring_other_version(folder, request);
  if (!has_jars(folder, request.kcl.which)) {
    cannot_set_up("mvn did not bring the daemon's jar, and reported no error");
  }
  if (!request.checksums.empty()) return expect_jars(folder, checksums);
  write_file(folder / checksum_file, checksums_of(folder));
  std::cerr
      << "KCL " << request.kcl.core << " with the daemon " << daemon
      << " was not tested with kclxx, so no checksums were known. Those of what Maven brought "
         "are recorded in "
      << (place / checksum_file).string()
      << " and compared before each run. To expect the same elsewhere: --checksums FILE"
      << std::endl;
}

std::string fetch_command(const kcl_choice& kcl) {
  return "kclxx daemon fetch --kcl " + kcl.text();
}

}  // namespace

fs::path place_of_jars(const fs::path& cache, const kcl_choice& kcl) {
  const std::string tested(jars_of(kcl.which).folder);  // "kcl3-0123456789ab"
  const auto dash = tested.find('-');
  return fs::absolute(cache) /
         (kcl.core.empty() ? tested
                           : tested.substr(0, dash) + "-" + kcl.core + tested.substr(dash));
}

fs::path named_folder(const std::string& name) {
  return (fs::absolute(name) / "").lexically_normal().parent_path();
}

bool has_jars(const fs::path& folder, kcl_version kcl) { return has_jar(folder, main_jar(kcl)); }

fs::path fetch_jars(const jar_request& request) {
  const kcl_choice& kcl = request.kcl;
  fs::path place = place_of_jars(request.cache, kcl);
  const auto fill = [&](const fs::path& folder) {
    if (!kcl.core.empty()) return fill_with_other_version(folder, place, request);
    fetch_with_maven(folder, jars_of(kcl.which), "the daemon of " + std::string(name_of(kcl.which)),
                     request.is_offline);
  };
  const bool was_there = has_jars(place, kcl.which);
  fetch_folder({place, [&](const fs::path& folder) { return has_jars(folder, kcl.which); }, fill});
  if (was_there) verify_jars(place, kcl, true);
  if (was_there && !request.checksums.empty()) {
    expect_as_fetched(place, text_of_file(request.checksums), fetch_command(kcl));
  }
  return place;
}

void verify_jars(const fs::path& folder, const kcl_choice& kcl, bool is_in_cache) {
  const std::string fetch = fetch_command(kcl);
  if (is_in_cache && kcl.core.empty()) {
    return expect_as_fetched(folder, jars_of(kcl.which).checksums, fetch);
  }
  std::error_code error;
  if (!is_in_cache && !fs::exists(folder / checksum_file, error)) return;
  expect_as_fetched(folder, text_of_file((folder / checksum_file).string()), fetch);
}

}  // namespace kclxx::tool
