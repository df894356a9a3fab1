// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <kclxx/archive/commit_log.hpp>

#include "base/file_name.hpp"
#include "base/fnv.hpp"

namespace kclxx::archive {

namespace {

constexpr std::string_view safe_marks = "-_.";
constexpr std::size_t max_part_bytes = 255;
/// It leaves room for a file's name in the 1024 bytes that the name of an object in S3 can have.
constexpr std::size_t max_folder_bytes = 600;

bool is_safe(char c) { return detail::is_plain(c, safe_marks); }

std::string hexadecimal(std::uint64_t value, std::size_t digits) {
  std::string text(digits, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4) {
    *digit = "0123456789ABCDEF"[value & 15];
  }
  return text;
}

std::string padded(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(12 - std::min<std::size_t>(12, digits.size()), '0') + digits;
}

void require_folder(const std::string& folder) {
  const auto refuse = [&](std::errc reason, const char* what) {
    throw std::system_error(std::make_error_code(reason), what + (" '" + folder + "'"));
  };
  if (folder.size() > max_folder_bytes) refuse(std::errc::filename_too_long, "a file's folder");
  for (std::size_t begin = 0; begin <= folder.size();) {
    const std::size_t end = std::min(folder.find('/', begin), folder.size());
    const std::string part = folder.substr(begin, end - begin);
    if (part.size() > max_part_bytes) refuse(std::errc::filename_too_long, "a file's folder");
    if (part.empty() || part.front() == '.' || part.front() == '_' ||
        part.find('\0') != std::string::npos) {
      refuse(std::errc::invalid_argument, "a file's folder");
    }
    begin = end + 1;
  }
}

/// The name of an object of the log: `NUMBER` for a commit, and `NUMBER.RANDOM.INDEX` for a file
/// that an attempt to make this commit has staged. Other names are somebody else's.
struct log_object {
  explicit log_object(std::string_view name) {
    name.remove_prefix(name.rfind('/') + 1);
    std::from_chars(name.data(), name.data() + name.size(), number);
    const std::string digits = padded(number);
    is_commit = name == digits;
    is_staged = name.starts_with(digits + '.') && name.find('.', digits.size() + 1) != name.npos;
  }
  std::uint64_t number = 0;
  bool is_commit;
  bool is_staged;
};

std::uint64_t newest_commit(std::span<const std::string> names) {
  std::uint64_t newest = 0;
  for (const std::string& name : names) {
    if (const log_object entry(name); entry.is_commit) newest = std::max(newest, entry.number);
  }
  return newest;
}

std::string text_of_commit(const sequence_position& position, const nlohmann::json& files) {
  return nlohmann::json{{"format", 1}, {"position", to_string(position)}, {"files", files}}.dump();
}

}  // namespace

std::string partition(std::string_view key, std::string_view value) {
  std::string part = std::string(key) + '=' + detail::percent_encoded(value, safe_marks);
  if (part.size() > max_part_bytes) {
    throw std::length_error("'" + std::string(key) + "' is too long for a folder's name");
  }
  return part;
}

std::string name_part(std::string_view name) {
  constexpr std::size_t kept = 47;
  if (!name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_safe) &&
      name.front() != '.' && name.front() != '_') {
    return std::string(name);
  }
  detail::fnv_hash hash;
  hash.add(name);
  std::string part(name.substr(0, kept));
  std::replace_if(
      part.begin(), part.end(), [](char c) { return !is_safe(c); }, '-');
  if (!part.empty() && (part.front() == '.' || part.front() == '_')) part.front() = '-';
  // A name that stays as it is has no '~'.
  return part + '~' + hexadecimal(hash.value(), 16);
}

std::string folder_of(const shard_context& shard) {
  return "_kclxx/" + name_part(shard.application_name().value_or("unknown")) + '/' +
         name_part(shard.stream_name().value_or("unknown")) + '/' + name_part(shard.shard_id());
}

std::string random_name() {
  std::random_device random;
  std::string name;
  while (name.size() < 32) name += hexadecimal(random(), 8);
  return name;
}

commit_log::commit_log(std::shared_ptr<store> store, const shard_context& shard)
    : store_(std::move(store)), log_folder_(folder_of(shard)) {
  file_name_prefix_ = log_folder_.substr(log_folder_.find('/') + 1) + '.';
  std::replace(file_name_prefix_.begin(), file_name_prefix_.end(), '/', '.');
}

const sequence_position& commit_log::position() {
  if (!is_loaded_) load();
  return position_;
}

void commit_log::load() {
  for (std::uint64_t missing = 0;;) {
    const std::vector<std::string> names = store_->list(log_folder_);
    newest_number_ = newest_commit(names);
    if (newest_number_ > 0) {
      const auto newest = store_->get(name_of(newest_number_));
      if (!newest) {
        // Since the list was read, another worker has made so many commits that this one is gone.
        // Then the next list has a newer one.
        if (std::exchange(missing, newest_number_) != newest_number_) continue;
        throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                                name_of(newest_number_) + " is listed, and cannot be read");
      }
      finish(*newest, names);
    }
    const bool has_attempts = std::any_of(names.begin(), names.end(), [&](const auto& name) {
      return log_object(name).is_staged && log_object(name).number == newest_number_ + 1;
    });
    if (has_taken_over_ || !has_attempts) break;
    // An attempt of another worker, which has crashed, or may still make its commit. A commit
    // without files takes the number, so that the staged files can be removed: a full disk may have
    // no room for new ones beside them. Only a worker that starts does so. Otherwise two workers
    // would for ever keep one another from committing.
    store_->put_if_absent(
        {name_of(newest_number_ + 1), text_of_commit(position_, nlohmann::json::object())});
  }
  has_taken_over_ = true;
  is_loaded_ = true;
}

bool commit_log::try_commit(std::vector<file> files, const sequence_position& position) {
  if (!is_loaded_) load();
  const std::uint64_t number = newest_number_ + 1;
  const std::string random = random_name();
  std::vector<object> staged;
  nlohmann::json names = nlohmann::json::object();
  for (file& file : files) {
    require_folder(file.folder);
    const std::string index = std::to_string(staged.size());
    const std::string name = name_of(number) + '.' + random + '.' + index;
    const std::string final_name =
        file_name_prefix_ + padded(number) + '.' + random + '.' + index + file.suffix;
    if (final_name.size() > max_part_bytes) {
      throw std::system_error(std::make_error_code(std::errc::filename_too_long),
                              "a file's name '" + final_name + "'");
    }
    names[name] = file.folder + '/' + final_name;
    staged.push_back({name, std::move(file.content)});
  }
  const object commit{name_of(number), text_of_commit(position, names)};
  const auto remove_staged = [&] {
    std::vector<std::string> staged_names;
    for (const object& object : staged) staged_names.push_back(object.name);
    try {
      store_->remove(staged_names);
    } catch (const std::system_error&) {  // the next commit removes them
    }
  };

  is_loaded_ = false;  // until the outcome is known
  bool may_be_committed = false;
  bool is_made = false;
  try {
    store_->put(staged);
    may_be_committed = true;
    is_made = store_->put_if_absent(commit);
  } catch (const outcome_unknown&) {
    // A request that is under way may still make the commit, which then needs its files.
    if (!may_be_committed) remove_staged();
    throw;
  } catch (const std::system_error&) {
    remove_staged();
    throw;
  }
  // An error of get() leaves the staged files: this attempt may be the commit, its answer lost.
  if (!is_made) {
    const auto content = store_->get(commit.name);
    if (content && !nlohmann::json::accept(*content)) {
      throw std::system_error(std::make_error_code(std::errc::bad_message),
                              commit.name + " is no commit");
    }
    if (content != commit.content) {
      remove_staged();
      return false;
    }
  }

  const std::vector<std::string> in_store = store_->list(log_folder_);
  if (newest_commit(in_store) > number) {
    // This worker was suspended so long that another one has made the commit of this number, and
    // the log has forgotten it since.
    store_->remove(std::vector{commit.name});
    remove_staged();
    return false;
  }
  newest_number_ = number;
  finish(commit.content, in_store);
  is_loaded_ = true;
  return true;
}

/// Gives the files of the newest commit their names, and removes objects of the log that no commit
/// needs. Several workers may do so at the same time. `log_names`: the names of the log's objects.
void commit_log::finish(const std::string& commit_text, std::span<const std::string> log_names) {
  nlohmann::json files;
  std::vector<renaming> renamings;
  std::vector<std::string> useless;
  try {
    const auto commit = nlohmann::json::parse(commit_text);
    if (commit.at("format") != 1) throw std::runtime_error("its format is not known");
    files = commit.at("files");
    for (const auto& [staged, name] : files.items()) {
      renamings.push_back({staged, name.get<std::string>()});
    }
    const auto position = sequence_position::from_string(commit.at("position").get<std::string>());
    if (!position) throw std::runtime_error("it has no position");
    position_ = *position;
  } catch (const std::exception& error) {
    throw std::system_error(std::make_error_code(std::errc::bad_message),
                            name_of(newest_number_) + " is no commit: " + error.what());
  }
  store_->move(renamings);
  for (const std::string& name : log_names) {
    const log_object entry(name);
    // The number of a staged file is taken: its attempt has failed, unless it is this commit, whose
    // files were just moved.
    const bool is_useless = entry.is_commit ? entry.number + kept_commits <= newest_number_
                                            : entry.is_staged && entry.number <= newest_number_;
    if (is_useless && !files.contains(name)) useless.push_back(name);
  }
  store_->remove(useless);
}

std::string commit_log::name_of(std::uint64_t number) const {
  return log_folder_ + '/' + padded(number);
}

}  // namespace kclxx::archive
