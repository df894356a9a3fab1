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

#include "base/fnv.hpp"

namespace kclxx::archive {

namespace {

constexpr std::string_view safe_characters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
constexpr std::size_t longest_part = 255;
constexpr std::size_t longest_folder =
    600;  // so that an object's name in S3 has at most 1024 bytes

bool is_safe(char c) { return safe_characters.find(c) != std::string_view::npos; }

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
  if (folder.size() > longest_folder) refuse(std::errc::filename_too_long, "a file's folder");
  for (std::size_t begin = 0; begin <= folder.size();) {
    const std::size_t end = std::min(folder.find('/', begin), folder.size());
    const std::string part = folder.substr(begin, end - begin);
    if (part.size() > longest_part) refuse(std::errc::filename_too_long, "a file's folder");
    if (part.empty() || part.front() == '.' || part.front() == '_' ||
        part.find('\0') != std::string::npos) {
      refuse(std::errc::invalid_argument, "a file's folder");
    }
    begin = end + 1;
  }
}

/// An object of the log: a commit, `NUMBER`; or what one attempt of that number has left,
/// `NUMBER.` and more.
struct entry {
  explicit entry(std::string_view name) {
    name.remove_prefix(name.rfind('/') + 1);
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    is_commit = error == std::errc() && end == name.data() + name.size();
    is_left_behind = error == std::errc() && !is_commit && *end == '.';
  }
  std::uint64_t number = 0;
  bool is_commit;
  bool is_left_behind;
};

std::uint64_t newest_commit(std::span<const std::string> names) {
  std::uint64_t newest = 0;
  for (const std::string& name : names) {
    if (const entry found(name); found.is_commit) newest = std::max(newest, found.number);
  }
  return newest;
}

std::string commit_text(const sequence_position& position, const nlohmann::json& files) {
  return nlohmann::json{{"format", 1}, {"position", to_string(position)}, {"files", files}}.dump();
}

}  // namespace

std::string partition(std::string_view key, std::string_view value) {
  std::string part = std::string(key) + '=';
  for (const char c : value) {
    if (is_safe(c)) {
      part += c;
    } else {
      part += '%' + hexadecimal(static_cast<unsigned char>(c), 2);
    }
  }
  if (part.size() > longest_part) {
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
  // No name that stays as it is has the '~'.
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
    : store_(std::move(store)), folder_(folder_of(shard)) {
  file_name_ = folder_.substr(folder_.find('/') + 1) + '.';
  std::replace(file_name_.begin(), file_name_.end(), '/', '.');
}

const sequence_position& commit_log::position() {
  if (!is_loaded_) load();
  return position_;
}

void commit_log::load() {
  for (;;) {
    const std::vector<std::string> names = store_->list(folder_);
    newest_ = newest_commit(names);
    if (newest_ > 0) {
      const auto newest = store_->get(name_of(newest_));
      // Another worker has made so many commits since the list that this one is gone.
      if (!newest) continue;
      finish(*newest, names);
    }
    const bool has_attempts = std::any_of(names.begin(), names.end(), [&](const auto& name) {
      return entry(name).is_left_behind && entry(name).number > newest_;
    });
    if (has_taken_over_ || !has_attempts) break;
    // Another worker's attempt: it has crashed, or can still win. A commit without files takes the
    // number, so that these objects can go: a full disk may have no room for new ones beside them.
    // Only a worker that starts does so, or two would keep each other from committing.
    store_->put_if_absent({name_of(newest_ + 1), commit_text(position_, nlohmann::json::object())});
  }
  has_taken_over_ = true;
  is_loaded_ = true;
}

bool commit_log::try_commit(std::vector<file> files, const sequence_position& position) {
  if (!is_loaded_) load();
  const std::uint64_t number = newest_ + 1;
  const std::string random = random_name();
  std::vector<object> staged;
  nlohmann::json names = nlohmann::json::object();
  for (file& of_commit : files) {
    require_folder(of_commit.folder);
    const std::string name = name_of(number) + '.' + random + '.' + std::to_string(staged.size());
    names[name] = of_commit.folder + '/' + file_name_ + padded(number) + '.' + random + '.' +
                  std::to_string(staged.size()) + of_commit.suffix;
    staged.push_back({name, std::move(of_commit.content)});
  }
  const object commit{name_of(number), commit_text(position, names)};
  // What stays is removed by whoever makes the next commit.
  const auto remove_staged = [&] {
    std::vector<std::string> removed;
    for (const object& of_attempt : staged) removed.push_back(of_attempt.name);
    try {
      store_->remove(removed);
    } catch (const std::system_error&) {
    }
  };

  is_loaded_ = false;  // until the outcome is known
  bool may_be_made = false;
  try {
    store_->put(staged);
    may_be_made = true;
    if (!store_->put_if_absent(commit) && store_->get(commit.name) != commit.content) {
      remove_staged();
      return false;
    }
  } catch (const outcome_unknown&) {
    // A request that is under way may still make the commit, which needs its files.
    if (!may_be_made) remove_staged();
    throw;
  } catch (const std::system_error&) {
    remove_staged();
    throw;
  }

  const std::vector<std::string> in_store = store_->list(folder_);
  if (newest_commit(in_store) > number) {
    // This worker was suspended for so long that the commit of this number was made, and forgotten.
    store_->remove(std::vector{commit.name});
    remove_staged();
    return false;
  }
  newest_ = number;
  finish(commit.content, in_store);
  is_loaded_ = true;
  return true;
}

/// Gives the files of the newest commit their names, and removes what no commit can name any more.
/// Several workers may do so at the same time. `names`: the objects of the log.
void commit_log::finish(const std::string& commit, std::span<const std::string> names) {
  std::vector<renaming> renamings;
  std::vector<std::string> removed;
  try {
    const auto read = nlohmann::json::parse(commit);
    if (read.at("format") != 1) throw std::runtime_error("its format is not known");
    for (const auto& [staged, name] : read.at("files").items()) {
      renamings.push_back({staged, name.get<std::string>()});
    }
    const auto position = sequence_position::from_string(read.at("position").get<std::string>());
    if (!position) throw std::runtime_error("it has no position");
    position_ = *position;
  } catch (const std::exception& error) {
    throw std::system_error(std::make_error_code(std::errc::bad_message),
                            name_of(newest_) + " is no commit: " + error.what());
  }
  store_->move(renamings);
  for (const std::string& name : names) {
    const entry found(name);
    // An attempt whose number is taken has lost, or is this commit.
    const bool is_useless = found.is_commit ? found.number + kept_commits <= newest_
                                            : found.is_left_behind && found.number <= newest_;
    const bool is_moved = std::any_of(renamings.begin(), renamings.end(),
                                      [&](const auto& moved) { return moved.from == name; });
    if (is_useless && !is_moved) removed.push_back(name);
  }
  store_->remove(removed);
}

std::string commit_log::name_of(std::uint64_t number) const {
  return folder_ + '/' + padded(number);
}

}  // namespace kclxx::archive
