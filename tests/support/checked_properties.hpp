// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/text.hpp"  // IWYU pragma: export
#include "tool/daemon/diagnostics.hpp"

namespace kclxx::test {

using namespace tool;

/// Properties without a diagnostic.
inline const std::map<kcl_version, std::string> sound{
    {kcl_version::kcl1,
     "executableName=/bin/child\napplicationName=my-app\nstreamName=stream\n"
     "AWSCredentialsProvider=DefaultAWSCredentialsProviderChain\n"
     "initialPositionInStream=LATEST\nlogWarningForTaskAfterMillis=60000\n"},
    {kcl_version::kcl2,
     "executableName=/bin/child\napplicationName=my-app\nstreamName=stream\n"
     "regionName=us-gov-east-1\n"
     "AWSCredentialsProvider=DefaultAWSCredentialsProviderChain\nretrievalMode=POLLING\n"
     "initialPositionInStream=LATEST\nshutdownGraceMillis=5000\nlogWarningForTaskAfterMillis="
     "60000\n"},
    {kcl_version::kcl3,
     "executableName=/bin/child\napplicationName=my-app\nstreamName=stream\n"
     "regionName=eu-central-1\n"
     "AwsCredentialsProvider=DefaultCredentialsProvider\nretrievalMode=POLLING\n"
     "initialPositionInStream=LATEST\nshutdownGraceMillis=5000\nlogWarningForTaskAfterMillis="
     "60000\n"}};

inline executable_state look(const std::string& program) {
  if (program == "/bin/child" || program == "/my programs/child") return executable_state::ok;
  if (program == "/bin/text") return executable_state::not_executable;
  if (program == "/bin") return executable_state::directory;
  return executable_state::missing;
}

inline std::vector<diagnostic> checked(const std::string& text,
                                       kcl_version which = kcl_version::kcl3) {
  return check(parse_properties(text), which, {look});
}

/// What is found in a sound file with these lines after it.
inline std::string with(const std::string& lines, kcl_version which = kcl_version::kcl3) {
  std::string result;
  for (const diagnostic& diagnostic : checked(sound.at(which) + lines, which)) {
    result += (diagnostic.level == severity::error ? "error: " : "warning: ") + diagnostic.what +
              "\n" + diagnostic.why + "\n";
  }
  return result;
}

/// What is found in a sound file without the lines that begin so.
inline std::vector<diagnostic> without(const std::string& beginning,
                                       kcl_version which = kcl_version::kcl3) {
  auto all = parse_properties(sound.at(which));
  std::erase_if(all, [&](const property& property) { return property.key.starts_with(beginning); });
  return check(all, which, {look});
}

}  // namespace kclxx::test
