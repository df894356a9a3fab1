// SPDX-License-Identifier: Apache-2.0
#include "tool/generate/generated_shards.hpp"

#include <stdexcept>
#include <utility>

namespace kclxx::tool {

namespace {

/// What falls to part `index` of `parts`, so that all together make `whole`.
template <class Number>
Number share(Number whole, std::size_t index, std::size_t parts) {
  return whole * (index + 1) / parts - whole * index / parts;
}

class stream {
 public:
  stream(const stream_shape& shape, random_numbers& random) : shape_(shape), random_(random) {
    for (std::size_t i = 0; i < shape.shards; ++i) {
      open_.push_back(add({}, shape.keys * i / shape.shards, shape.keys * (i + 1) / shape.shards));
    }
  }

  std::vector<generated_shard> run() {
    spread_records();
    for (std::size_t i = 0; i < shape_.reshardings; ++i) {
      ++epoch_;
      const bool merges = open_.size() > 1 && random_.below(2) == 0;
      merges ? merge(random_.below(open_.size() - 1)) : split(random_.below(open_.size()));
      spread_records();
    }
    return std::move(all_);
  }

 private:
  std::size_t add(std::vector<std::size_t> parents, std::size_t first_key, std::size_t end_key) {
    if (first_key >= end_key) {
      throw std::invalid_argument(std::to_string(shape_.keys) +
                                  " keys are too few: every shard needs one");
    }
    const std::size_t number = all_.size();
    all_.push_back({number, epoch_, first_key, end_key, std::move(parents)});
    return number;
  }

  // open_ stays in the order of the keys, so that neighbours in it are neighbours.
  void split(std::size_t place) {
    all_[open_[place]].is_closed = true;
    const generated_shard parent = all_[open_[place]];
    const std::size_t middle = (parent.first_key + parent.end_key) / 2;
    open_[place] = add({parent.number}, parent.first_key, middle);
    open_.insert(open_.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                 add({parent.number}, middle, parent.end_key));
  }

  void merge(std::size_t place) {
    const std::size_t left = open_[place];
    const std::size_t right = open_[place + 1];
    all_[left].is_closed = all_[right].is_closed = true;
    open_[place] = add({left, right}, all_[left].first_key, all_[right].end_key);
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }

  void spread_records() {
    const std::uint64_t in_epoch = share(shape_.records, epoch_, shape_.reshardings + 1);
    for (std::size_t i = 0; i < open_.size(); ++i) {
      all_[open_[i]].records += share(in_epoch, i, open_.size());
    }
  }

  const stream_shape& shape_;
  random_numbers& random_;
  std::size_t epoch_ = 0;
  std::vector<generated_shard> all_;
  std::vector<std::size_t> open_;
};

}  // namespace

std::string generated_shard::id() const {
  std::string digits = std::to_string(number);
  if (digits.size() < 12) digits.insert(0, 12 - digits.size(), '0');
  return "shardId-" + digits;
}

std::vector<generated_shard> generate_shards(const stream_shape& shape, random_numbers& random) {
  return stream(shape, random).run();
}

}  // namespace kclxx::tool
