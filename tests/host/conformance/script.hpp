// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "daemon_model/shard_consumer.hpp"

namespace kclxx::oracle {

struct record_fields {
  std::optional<std::string> data{};  ///< base64
  std::optional<std::string> partition_key{};
  std::string sequence_number{};
  std::uint64_t sub_sequence_number = 0;
  std::optional<std::int64_t> arrival{};  ///< milliseconds since 1970
};

/// What the daemon does.
struct call {
  protocol::action_kind kind{};
  std::string shard_id{};                 ///< initialize
  std::string sequence_number{};          ///< initialize
  std::uint64_t sub_sequence_number = 0;  ///< initialize
  std::vector<record_fields> records{};   ///< process_records
  std::optional<std::int64_t> millis_behind_latest{};
};

/// What the child writes at once: any bytes.
struct turn {
  std::string write{};
  bool end = false;  ///< then it closes its output
};

/// A dialogue between a daemon and a child, both sides laid down beforehand. Played on the model
/// and on the real classes it must give the same events.
struct script {
  std::string name{};
  std::vector<call> calls{};
  /// For each call: the first turn comes with the call's line, each further one with the answer to
  /// a checkpoint.
  std::vector<std::vector<turn>> child{};
  /// What the lease table answers to each write: "ok", which it also answers after the last, or the
  /// simple name of an exception.
  std::vector<std::string> store{};
};

/// The scripts of a file in cases/, written as README.md describes.
/// Errors: std::runtime_error with the file, and the case's name.
std::vector<script> read_cases(const std::filesystem::path& file);

/// A dialogue as a daemon would lead it, with a child that is mostly right and now and then wrong
/// in every way that the model claims to know. The same seed gives the same script.
script random_script(std::uint64_t seed);

std::string status_line(std::string_view action);
std::string checkpoint_line(const std::optional<std::string>& sequence_number,
                            std::optional<std::int64_t> sub_sequence_number);

/// One line for java/Oracle.java, which describes it.
nlohmann::json to_json(const script& script);

/// Plays the script on the model; the events are of the same form as those of the real classes.
nlohmann::json play_on_model(const script& script);

}  // namespace kclxx::oracle
