// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/java_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

namespace kclxx::tool {

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

/// What an option decides.
enum class matter { collector, heap, generations, compiler, metaspace, archive };

struct option_name {
  std::string_view beginning;
  matter what;
};

// Without the + or - of a flag. Sizes of the generations and of the first heap depend on each
// other.
constexpr std::array<option_name, 32> option_names{{
    {"-Xmx", matter::heap},
    {"-XX:MaxHeapSize=", matter::heap},
    {"-XX:MaxRAM", matter::heap},
    {"-XX:MinRAM", matter::heap},
    {"-XX:AggressiveHeap", matter::heap},
    {"-Xms", matter::generations},
    {"-XX:InitialHeapSize=", matter::generations},
    {"-XX:InitialRAM", matter::generations},
    {"-Xmn", matter::generations},
    {"-XX:NewSize=", matter::generations},
    {"-XX:MaxNewSize=", matter::generations},
    {"-XX:NewRatio=", matter::generations},
    {"-XX:TieredStopAtLevel=", matter::compiler},
    {"-XX:TieredCompilation", matter::compiler},
    {"-XX:CompilationMode=", matter::compiler},
    {"-Xint", matter::compiler},
    {"-Xcomp", matter::compiler},
    {"-client", matter::compiler},
    {"-XX:MetaspaceSize=", matter::metaspace},
    {"-Xshare:", matter::archive},
    {"-XX:SharedArchiveFile=", matter::archive},
    {"-XX:ArchiveClassesAtExit=", matter::archive},
    {"-XX:AutoCreateSharedArchive", matter::archive},
    {"-XX:SharedClassListFile=", matter::archive},
    {"-XX:DumpLoadedClassList=", matter::archive},
    {"-XX:AOT", matter::archive},
    {"-Xbootclasspath", matter::archive},
    {"--patch-module", matter::archive},
    // An archive is for one class path.
    {"-cp", matter::archive},
    {"-classpath", matter::archive},
    {"--class-path", matter::archive},
    {"-XX:Flags=", matter::archive},
}};

std::optional<matter> matter_of(std::string option) {
  if (option.starts_with("-XX:+") || option.starts_with("-XX:-")) option.erase(4, 1);
  if (option.starts_with("-XX:Use") && option.ends_with("GC")) return matter::collector;
  const auto* const found =
      std::find_if(option_names.begin(), option_names.end(),
                   [&](const option_name& one) { return option.starts_with(one.beginning); });
  if (found == option_names.end()) return std::nullopt;
  return found->what;
}

/// Bytes, of a text like 256m.
std::optional<std::uint64_t> size_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || unit.size() > 1) return std::nullopt;
  if (unit.empty()) return number;
  switch (unit.front()) {
    case 'k':
    case 'K':
      return number << 10U;
    case 'm':
    case 'M':
      return number << 20U;
    case 'g':
    case 'G':
      return number << 30U;
    default:
      return std::nullopt;
  }
}

/// The maximum that the last of the user's options gives. Nothing: none does in bytes.
std::optional<std::uint64_t> heap_of(const std::vector<std::string>& given) {
  std::optional<std::uint64_t> heap;
  for (const std::string& one : given) {
    if (matter_of(one) != matter::heap) continue;
    const std::string_view text = one;
    const std::string_view flag = "-XX:MaxHeapSize=";
    heap = text.starts_with("-Xmx") ? size_of(text.substr(4))
           : text.starts_with(flag) ? size_of(text.substr(flag.size()))
                                    : std::nullopt;
  }
  return heap;
}

/// Java's own choice is a quarter. That is too little for a few shards in a small container, and
/// at a high rate: what several calls hold at once must not fill the old generation. From 32 GiB on
/// Java gives up short references, which the class archive relies on.
std::uint64_t heap_for(const java_choice& choice) {
  const std::uint64_t memory = choice.machine.memory;
  const std::uint64_t wanted = choice.is_busy ? memory / 2 : std::min(memory / 2, 512 * mib);
  return std::min(std::max(memory / 4, wanted), mib * 1024 * 31);
}

bool decides(const std::vector<std::string>& given, matter subject) {
  return std::any_of(given.begin(), given.end(),
                     [&](const std::string& one) { return matter_of(one) == subject; });
}

std::string in_mib(std::uint64_t bytes) { return std::to_string(bytes / mib) + "m"; }

}  // namespace

std::vector<std::string> java_options(const java_choice& choice,
                                      const std::vector<std::string>& given) {
  const auto is_given = [&](matter subject) { return decides(given, subject); };
  std::vector<std::string> options;
  // Garbage is what costs at a high rate: a call's records are text of several times their size,
  // and dead after it. G1 treats such large objects like old ones; these two do not.
  const bool is_parallel = choice.is_busy && choice.machine.cpus > 1;
  if (!is_given(matter::collector)) {
    options.emplace_back(is_parallel ? "-XX:+UseParallelGC" : "-XX:+UseSerialGC");
    // More threads wait for each other longer than they save.
    if (is_parallel && choice.machine.cpus > 4) options.emplace_back("-XX:ParallelGCThreads=4");
  }
  std::optional<std::uint64_t> heap = heap_of(given);
  if (!is_given(matter::heap) && choice.machine.memory != 0) {
    heap = heap_for(choice);
    options.push_back("-Xmx" + in_mib(*heap));
  }
  if (heap && !is_given(matter::collector) && !is_given(matter::generations)) {
    const std::uint64_t young =
        choice.is_busy ? std::min(*heap / 5 * 3, 1200 * mib) : std::min(*heap / 3, 64 * mib);
    options.push_back("-Xms" + in_mib(std::min(*heap, young + 128 * mib)));
    options.push_back("-Xmn" + in_mib(young));
  }
  // The full compiler pays for itself once a method has run for long, which at a low rate is never.
  if (!choice.is_busy && !is_given(matter::compiler)) {
    options.emplace_back("-XX:TieredStopAtLevel=1");
  }
  // The KCL's classes take more than the 21 MiB at which Java otherwise begins to collect them.
  if (!is_given(matter::metaspace)) options.emplace_back("-XX:MetaspaceSize=96m");
  if (!choice.class_archive.empty() && !is_given(matter::archive)) {
    options.push_back("-XX:SharedArchiveFile=" + choice.class_archive);
  }
  return options;
}

bool decides_class_archive(const std::vector<std::string>& given) {
  return decides(given, matter::archive);
}

}  // namespace kclxx::tool
