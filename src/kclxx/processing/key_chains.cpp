// SPDX-License-Identifier: Apache-2.0
#include "processing/key_chains.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kclxx::processing {

namespace {

std::uint64_t hash_of(std::optional<std::string_view> key) {
  return key ? std::hash<std::string_view>{}(*key) : 0;
}

}  // namespace

/// Of the key's first record, or the free place for it.
std::size_t key_chains::place_of(std::uint64_t hash, std::optional<std::string_view> key) noexcept {
  std::size_t place = hash % firsts_.size();
  while (firsts_[place] != none && (link_of(firsts_[place]).hash != hash ||
                                    window_.at(firsts_[place]).partition_key() != key)) {
    place = after(place);
  }
  return place;
}

bool key_chains::push(arrival which) {
  if (window_.size() > links_.size()) grow(window_.size());
  const auto key = window_.at(which).partition_key();
  const std::uint64_t hash = hash_of(key);
  arrival& first = firsts_[place_of(hash, key)];
  link_of(which) = {none, which, hash};
  if (first == none) {
    first = which;
    return true;
  }
  link& chain = link_of(first);
  link_of(chain.last).next = which;
  chain.last = which;
  return false;
}

std::optional<arrival> key_chains::pop(arrival which) {
  const link gone = link_of(which);
  std::size_t place = gone.hash % firsts_.size();
  while (firsts_[place] != which) place = after(place);
  if (gone.next == none) {
    erase(place);
    return std::nullopt;
  }
  firsts_[place] = gone.next;
  link_of(gone.next).last = gone.last;
  return gone.next;
}

/// Moves up what would not be found any more beyond the gap.
void key_chains::erase(std::size_t gap) noexcept {
  firsts_[gap] = none;
  for (std::size_t place = after(gap); firsts_[place] != none; place = after(place)) {
    const std::size_t wanted = link_of(firsts_[place]).hash % firsts_.size();
    const auto distance = [this](std::size_t from, std::size_t to) {
      return (to - from) % firsts_.size();
    };
    if (distance(wanted, place) < distance(gap, place)) continue;
    firsts_[gap] = std::exchange(firsts_[place], none);
    gap = place;
  }
}

void key_chains::grow(std::size_t records) {
  std::vector<link> links(std::bit_ceil(records));
  std::vector<arrival> firsts(2 * links.size(), none);
  links.swap(links_);
  firsts.swap(firsts_);
  for (const arrival first : firsts) {
    if (first == none) continue;
    const std::uint64_t hash = links[first % links.size()].hash;
    std::size_t place = hash % firsts_.size();
    while (firsts_[place] != none) place = after(place);
    firsts_[place] = first;
    for (arrival which = first; which != none; which = links[which % links.size()].next) {
      link_of(which) = links[which % links.size()];
    }
  }
}

}  // namespace kclxx::processing
