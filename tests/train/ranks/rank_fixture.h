// Experiments that several ranks share, each a fork of the test's process.
#pragma once

#include "train/experiment_fixture.h"
#include "train/ranks/forked_ranks.h"

#include <tenon/memory/purpose.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace tenon::test {

class RankExperiment : public Experiment {
 protected:
  using Words = std::vector<std::string>;

  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000);
  }

  /// Three steps of twelve examples.
  static Words small(const std::string& model, const Words& more) {
    Words words = {"train.batch_size=12",   "train.test_batch_size=12", "data.test_limit=24", "train.max_steps=3",
                   "train.optimizer=adamw", "model.layers=2",           "model.heads=4",      "model.context=8"};
    words.push_back(model == "mlp" ? "model.hidden=24" : "model.hidden=16");
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  nlohmann::json told(const ExperimentResult& result) {
    nlohmann::json json = {{"losses", result.losses},
                           {"parameters", result.parameters},
                           {"steps", result.steps},
                           {"interrupted", result.interrupted},
                           {"kept_step", result.kept_step},
                           {"notes", sink.notes},
                           {"figures", nlohmann::json::object()},
                           {"ranks", nlohmann::json::array()}};
    for (const EpochResult& epoch : result.epochs) {
      json["test_loss"] = epoch.test_loss;
      json["test_accuracy"] = epoch.test_accuracy;
    }
    for (const auto& [name, value] : result.figures) json["figures"][name] = value;
    for (const RankMemory& memory : result.ranks)
      json["ranks"].push_back({memory.peak_requested_bytes, memory.peak_allocated_bytes, memory.peak_reserved_bytes,
                               memory.peak_optimizer_state_bytes, memory.peak_parameter_bytes,
                               memory.peak_gradient_bytes});
    const auto of = [&](Purpose purpose) {
      return result.memory.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
    };
    json["own_memory"] = {result.memory.requested_bytes.peak,
                          result.memory.allocated_bytes.peak,
                          result.memory.reserved_bytes.peak,
                          of(Purpose::kOptimizerState),
                          of(Purpose::kParameter),
                          of(Purpose::kGradient)};
    return json;
  }

  /// What one process comes to.
  nlohmann::json alone(const std::string& model, const Words& words) {
    sink.notes.clear();
    state.ranks = nullptr;
    return told(run_model(model, small(model, words), {}));
  }

  /// What each rank comes to; `before` is called on each with its number, and may change what it runs.
  std::vector<nlohmann::json> ranks(int size, const std::string& model, const Words& words,
                                    const std::function<void(int rank, Words& words)>& before = {}) {
    shutdown();
    return on_ranks(size, [&](const std::shared_ptr<Communicator>& ranks) {
      Words own = small(model, words);
      sink.notes.clear();
      state.ranks = ranks;
      if (before) before(ranks->rank(), own);
      nlohmann::json json = told(run_model(model, own, {}));
      for (const Message& message : messages())
        json["messages"].push_back({std::string(name_of(message.kind)), message.bytes, message.ranks});
      json["more"] = more_;
      return json;
    });
  }

  nlohmann::json more_;  ///< of a rank: what a test adds to its words
};

}  // namespace tenon::test
