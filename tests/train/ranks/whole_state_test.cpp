// States of divided layers: whole on rank 0 while they are saved, and in parts again from what was loaded.
#include <tenon/nn/module.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adam.h>
#include <tenon/train/parallel/whole_state.h>
#include "train/ranks/rank_fixture.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

using train::DividedRun;
using train::TensorParallel;
using train::TensorPart;

/// A tensor of a model, how it is divided, and what it is whole.
struct Divided {
  std::string name;
  std::int64_t dim = 0, sections = 1;
  Tensor whole;
};

/// For six ranks or any that divide these.
std::vector<Divided> tensors() {
  const auto numbered = [](const std::vector<std::int64_t>& sizes, double from) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    return (tenon::arange(count, TensorOptions(kFloat32)) + from).view(sizes);
  };
  return {{"rows", 0, 1, numbered({6, 2}, 1)},           {"queries, keys and values", 0, 3, numbered({18, 2}, 100)},
          {"their bias", 0, 3, numbered({18}, 200)},     {"a bias", 0, 1, numbered({6}, 300)},
          {"a filter", 0, 2, numbered({12, 2, 2}, 350)}, {"columns", 1, 1, numbered({3, 6}, 400)}};
}

/// A rank's part: of each section of the first dim, or of the second dim, one element after the other.
Tensor part_of(const Divided& divided, int rank, int size) {
  const std::int64_t length = divided.whole.size(divided.dim) / divided.sections, own = length / size;
  std::vector<Tensor> parts;
  for (std::int64_t section = 0; section < divided.sections; ++section)
    for (std::int64_t i = 0; i < own; ++i)
      parts.push_back(divided.whole.narrow(divided.dim, section * length + rank * own + i, 1));
  return tenon::cat(parts, divided.dim).clone();
}

/// A model of which a rank has parts, and an optimiser that has made a step; with masters, one for each parameter.
struct Model {
  Model(const std::shared_ptr<Communicator>& ranks, bool has_masters)
      : all(tensors()), divided(ranks), is_first(ranks->rank() == 0), rank(ranks->rank()), size(ranks->size()) {
    all.push_back({"whole everywhere", 0, 1, tenon::arange(5, TensorOptions(kFloat32))});
    for (std::size_t i = 0; i < all.size(); ++i) {
      trained.push_back(
          (i + 1 < all.size() ? part_of(all[i], rank, size) : all[i].whole.clone()).set_requires_grad(true));
      if (i + 1 < all.size())
        divided.note_part({.parameter = trained.back(), .dim = all[i].dim, .sections = all[i].sections});
      optimised.push_back(has_masters ? (trained.back().detach() + 0.5).set_requires_grad(true) : trained.back());
    }
    optimizer.emplace(optimised, optim::AdamWOptions(0).weight_decay(0));
    for (const Tensor& parameter : optimised) parameter.mutable_grad() = gradient_of(parameter.detach());
    optimizer->step();
  }
  /// Such that each of its elements is another one's own.
  static Tensor gradient_of(const Tensor& values) { return values * 2 + 1; }

  DividedRun run() { return {divided, *optimizer, trained, optimised}; }
  std::vector<Tensor> states(std::size_t i) {
    std::vector<Tensor> tensors;
    for (const optim::StateTensor& slot : optimizer->state().find(optim::state_key(optimised[i]))->second->tensors())
      if (slot.tensor->defined()) tensors.push_back(*slot.tensor);
    return tensors;
  }

  std::vector<Divided> all;
  TensorParallel divided;
  bool is_first;
  int rank, size;
  std::vector<Tensor> trained, optimised;
  std::optional<optim::AdamW> optimizer;
};

/// Complains unless what a model has, value, master and states, is that of `whole` of each tensor, or of its parts.
void compare(Model& model, bool is_whole, const std::string& when, nlohmann::json& complaints) {
  for (std::size_t i = 0; i < model.all.size(); ++i) {
    const Divided& divided = model.all[i];
    const bool has_parts = i + 1 < model.all.size();
    const Tensor expected = has_parts && !is_whole ? part_of(divided, model.rank, model.size) : divided.whole;
    const auto expect = [&](const Tensor& tensor, const Tensor& wanted, const char* what) {
      if (tensor.sizes() == wanted.sizes() && tenon::allclose(tensor.detach(), wanted, 1e-6, 1e-6)) return;
      complaints.push_back(fmt::format("{} of {} {}, rank {}", what, divided.name, when, model.rank));
    };
    expect(model.trained[i], expected, "the value");
    const bool has_masters = !model.optimised[i].is_same(model.trained[i]);
    const Tensor master = has_masters ? expected + 0.5 : expected;
    expect(model.optimised[i], master, "the master");
    const std::vector<Tensor> states = model.states(i);
    if (states.size() != 2) complaints.push_back("AdamW remembers two moments");
    const Tensor gradient = Model::gradient_of(master);
    expect(states.at(0), gradient * 0.1, "the first moment");
    expect(states.at(1), gradient.square() * 0.001, "the second moment");
  }
}

class WholeStates : public RankExperiment, public ::testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  /// What all ranks of a model complain about.
  static nlohmann::json complaints(const std::function<void(Model&, nlohmann::json&)>& work) {
    const auto& [size, has_masters] = GetParam();
    nlohmann::json all = nlohmann::json::array();
    for (const nlohmann::json& rank : on_ranks(size, [&](const std::shared_ptr<Communicator>& ranks) {
           nlohmann::json own = nlohmann::json::array();
           Model model(ranks, has_masters);
           work(model, own);
           return own;
         })) {
      if (rank.is_object()) all.push_back(rank);
      for (const nlohmann::json& complaint : rank)
        if (rank.is_array()) all.push_back(complaint);
    }
    return all;
  }
};

TEST_P(WholeStates, AreWholeOnRankZeroAndInPartsAgainBehindIt) {
  EXPECT_EQ(complaints([](Model& model, nlohmann::json& own) {
              compare(model, false, "before", own);
              std::vector<const void*> before;
              for (const Tensor& parameter : model.trained) before.push_back(parameter.data_ptr());
              {
                const train::WholeState whole(model.run());
                compare(model, model.is_first, "meanwhile", own);
              }
              compare(model, false, "behind it", own);
              for (std::size_t i = 0; i < before.size(); ++i)
                if (model.trained[i].data_ptr() != before[i]) own.push_back("parts are elsewhere");
            }),
            nlohmann::json::array());
}

TEST_P(WholeStates, OfWhatWasLoadedEachRankKeepsItsParts) {
  EXPECT_EQ(complaints([](Model& model, nlohmann::json& own) {
              const NoGradGuard no_grad;
              train::make_room_for_whole(model.run());
              for (std::size_t i = 0; i < model.all.size(); ++i) {
                const Tensor& whole = model.all[i].whole;
                if (model.trained[i].sizes() != whole.sizes()) return own.push_back("there is no room");
                const bool has_masters = !model.optimised[i].is_same(model.trained[i]);
                const Tensor master = has_masters ? whole + 0.5 : whole, gradient = Model::gradient_of(master);
                model.trained[i].detach().copy_(whole);
                model.optimised[i].detach().copy_(master);
                const auto slots =
                    model.optimizer->state().find(optim::state_key(model.optimised[i]))->second->tensors();
                *slots[0].tensor = gradient * 0.1;
                *slots[1].tensor = gradient.square() * 0.001;
              }
              train::keep_parts(model.run());
              compare(model, false, "of what was loaded", own);
              for (const Tensor& parameter : model.trained)
                if (!parameter.is_contiguous()) own.push_back("a part is no tensor of its own");
            }),
            nlohmann::json::array());
}

INSTANTIATE_TEST_SUITE_P(Ranks, WholeStates, ::testing::Combine(::testing::Values(2, 3), ::testing::Bool()),
                         [](const auto& row) {
                           return std::string(std::get<1>(row.param) ? "masters" : "alone") +
                                  std::to_string(std::get<0>(row.param));
                         });

class DividedLayersRun : public RankExperiment {};

// Every rank draws whole layers, so that what two of them save before anything was learned is what one process saves.
TEST_F(DividedLayersRun, HaveTheLossesAndTheSizeOfOneProcess) {
  for (const std::string model : {"gpt", "llama"}) {
    for (const std::string more : {"train.micro_batches=1", "train.clip_grad_norm=0.05", "train.checkpoint=true"}) {
      const nlohmann::json one = alone(model, {more});
      for (const int size : {2, 4}) {
        for (const nlohmann::json& rank : ranks(size, model, {more, "train.tensor_parallel=2"})) {
          ASSERT_FALSE(rank.contains("error")) << rank;
          EXPECT_EQ(rank["parameters"], one["parameters"]) << "of the whole model";
          EXPECT_EQ(rank["figures"]["ranks"], size);
          EXPECT_EQ(rank["figures"].value("data_ranks", 1), size / 2);
          ASSERT_EQ(rank["losses"].size(), 3U);
          for (std::size_t i = 0; i < 3; ++i)
            EXPECT_NEAR(rank["losses"][i].get<double>(), one["losses"][i].get<double>(), 2e-5) << model << " " << more;
          EXPECT_NEAR(rank["test_loss"].get<double>(), one["test_loss"].get<double>(), 2e-5);
        }
      }
    }
  }
}

TEST_F(DividedLayersRun, GoOnFromAWholeStateAloneAndTogether) {
  const Words common = {"model.layers=1"};
  const std::string file = "\"" + (folder / "state").string() + "\"";
  const auto with = [&](Words more) {
    more.insert(more.end(), common.begin(), common.end());
    return more;
  };
  const nlohmann::json whole = alone("gpt", with({}));
  const auto rest_is_near = [&](const nlohmann::json& part, const char* who) {
    ASSERT_EQ(part["losses"].size(), 2U) << who << part;
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(part["losses"][i].get<double>(), whole["losses"][i + 1].get<double>(), 2e-5) << who;
    EXPECT_EQ(part["figures"]["resumed_at_step"], 1) << who;
  };
  ranks(2, "gpt", with({"train.tensor_parallel=2", "train.stop_at=1", "train.save=" + file}));
  rest_is_near(alone("gpt", with({"train.resume=" + file})), "alone");
  for (const nlohmann::json& rank : ranks(2, "gpt", with({"train.tensor_parallel=2", "train.resume=" + file})))
    rest_is_near(rank, "two");
  alone("gpt", with({"train.stop_at=1", "train.save=" + file}));
  for (const nlohmann::json& rank : ranks(2, "gpt", with({"train.tensor_parallel=2", "train.resume=" + file})))
    rest_is_near(rank, "two of one's");
}

TEST_F(DividedLayersRun, SendASumForEachHalfOfABlockForwardAndBack) {
  const nlohmann::json rank =
      ranks(2, "gpt", {"train.tensor_parallel=2", "train.max_steps=1", "train.clip_grad_norm=0.0"})[1];
  const std::int64_t stream = 12 * 8 * 16 * 4;  // batch, context, hidden, float32
  std::int64_t sums = 0, bytes = 0;
  for (const nlohmann::json& message : rank["messages"]) {
    if (message[0] != "all_reduce") continue;
    sums += message[1] == stream ? 1 : 0;
    bytes += message[1].get<std::int64_t>();
  }
  EXPECT_EQ(sums, 2 * (4 + 2 * 2)) << "in each of two blocks, of a step and two batches of a test";
  EXPECT_LE(rank["figures"]["tensor_parallel_sent_bytes"], bytes);
  EXPECT_GE(rank["figures"]["tensor_parallel_sent_bytes"], sums * stream);
}

}  // namespace
}  // namespace tenon::test
