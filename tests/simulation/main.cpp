// SPDX-License-Identifier: Apache-2.0
// Random lives of random shards.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "simulation/life.hpp"
#include "simulation/seed_runner.hpp"
#include "simulation/world.hpp"

namespace {

using namespace kclxx::simulation;

constexpr int most_lives = 8;

/// One shard from its first reader to its last.
class shard_run {
 public:
  shard_run(std::uint64_t seed, trace& log, recipe recipe)
      : log_(log), random_(seed), shard_(random_, recipe) {}

  run_length run() {
    while (!lives_.empty() || started_ == 0 || !shard_.is_finished()) {
      step(nullptr);
      remove_ended();
    }
    shard_.check_finished();
    return length_;
  }

 private:
  /// A life in its callback is suspended, but for the one that called.
  void step(const life* caller) {
    if (may_start()) start();
    std::vector<life*> candidates;
    for (const auto& one : lives_) {
      const bool is_suspended = one->is_in_user_code() && one.get() != caller;
      if (!one->is_over() && !is_suspended) candidates.push_back(one.get());
    }
    if (!candidates.empty()) candidates[random_.below(candidates.size())]->take_step();
  }

  /// The next life may begin before the last has ended, if that has lost its lease.
  bool may_start() {
    if (started_ > 0 && shard_.is_finished()) return false;
    const bool is_all_over =
        std::all_of(lives_.begin(), lives_.end(), [](const auto& one) { return one->is_over(); });
    return is_all_over ||
           (started_ < most_lives - 1 && lives_.back()->is_lease_lost() && random_.chance(10));
  }

  void start() {
    // The last life meets no faults and no other life, so it finishes; what it may not do is lose
    // what came before.
    if (++started_ > most_lives) {
      throw violation("end: a life without faults did not finish the shard");
    }
    log_.note([&] {
      return "--- life " + std::to_string(started_) + ", after " + to_string(shard_.persisted);
    });
    lives_.push_back(std::make_unique<life>(shard_, random_, started_ < most_lives, log_,
                                            [this](const life& caller) { step(&caller); }));
  }

  void remove_ended() {
    std::erase_if(lives_, [this](const auto& one) {
      if (!one->is_over()) return false;
      one->check_end();
      length_.steps += one->steps();
      length_.time += one->time();
      return true;
    });
  }

  trace& log_;
  random_source random_;
  world shard_;
  std::vector<std::unique_ptr<life>> lives_;
  int started_ = 0;
  run_length length_;
};

}  // namespace

int main(int argc, char** argv) {
  recipe recipe;
  return run_seeds(
      argc, argv,
      "Simulates the dialogue: session, daemon, processor, time and faults, from a seed.",
      [&recipe](std::uint64_t seed, trace& log) { return shard_run(seed, log, recipe).run(); },
      life::met(),
      [&recipe](CLI::App& app) {
        app.add_flag("!--without-lock", recipe.locks, "The user does not lock the stored position");
        app.add_flag("!--without-position", recipe.leaves_out,
                     "The user does not leave out what the stored position covers");
      });
}
