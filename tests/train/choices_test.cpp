// What [train] and [data] name: optimisers with what they remember, courses of the learning rate, data sets.
#include "train/experiment_fixture.h"

#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/sgd.h>
#include <tenon/train/input/data_set.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/schedules.h>

#include <cmath>
#include <numbers>

namespace tenon::test {
namespace {

/// The section [train] with these settings, the others at their defaults.
Options train_section(const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const SectionSpec& section : training_sections()) {
    if (section.name != "train") continue;
    Options options(section.options);
    for (const auto& [name, value] : settings) options.set_text(name, value);
    return options;
  }
  throw Error("there is no section [train]");
}

/// Bytes of the tensors of a parameter's sizes in what the optimiser saves.
std::int64_t saved_bytes(const optim::Optimizer& optimizer, const Tensor& like) {
  OutputArchive archive;
  optimizer.save(archive);
  std::int64_t bytes = 0;
  for (const auto& item : archive.content().tensors) {
    if (item.value().sizes() == like.sizes()) bytes += static_cast<std::int64_t>(item.value().nbytes());
  }
  return bytes;
}

TEST(Optimizers, RememberAsManyBytesAsTheirRowsSay) {
  for (const std::string& name : train::optimizer_names()) {
    for (const std::string momentum : {"0", "0.9"}) {
      SCOPED_TRACE(name + " with momentum " + momentum);
      const Options options = train_section({{"optimizer", name}, {"momentum", momentum}});
      const Tensor weight = ones({3, 5}).requires_grad_();
      const auto optimizer = train::make_optimizer(options, {weight});
      weight.square().sum().backward();
      optimizer->step();
      EXPECT_EQ(saved_bytes(*optimizer, weight), train::state_bytes(options, {weight}).device);
    }
  }
}

/// The learning rate of each of so many steps.
std::vector<double> rates(const Options& options, std::int64_t steps) {
  const Tensor weight = ones({1}).requires_grad_();
  optim::SGD sgd({weight}, optim::SGDOptions(0.1));
  const auto schedule = train::make_schedule(options, sgd, steps);
  std::vector<double> found;
  for (std::int64_t step = 0; step < steps; ++step) {
    found.push_back(sgd.param_groups()[0].options().get_lr());
    schedule->step();
  }
  return found;
}

TEST(Schedules, RiseAndThenFollowTheirFormula) {
  const std::int64_t steps = 50;
  for (const std::int64_t warmup : {0, 1, 10, 60}) {
    for (const std::string& name : train::schedule_names()) {
      SCOPED_TRACE(name + " behind " + std::to_string(warmup));
      const auto found =
          rates(train_section({{"lr", "0.1"}, {"schedule", name}, {"schedule_warmup", std::to_string(warmup)}}), steps);
      for (std::int64_t step = 0; step < steps; ++step) {
        const double done =
            static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(steps - warmup, 1));
        double wanted = 0.1;
        if (name == "cosine") wanted = 0.1 * 0.5 * (1 + std::cos(std::numbers::pi * done));
        if (name == "linear") wanted = 0.1 * (1 - done);
        if (step < warmup) wanted = 0.1 * static_cast<double>(step + 1) / static_cast<double>(warmup);
        EXPECT_NEAR(found[static_cast<std::size_t>(step)], wanted, 1e-16) << "step " << step;
      }
    }
  }
}

TEST(DataSets, HaveAPlaceThatIsCheckedBeforeItIsRead) {
  ASSERT_GE(train::data_sets().size(), 2u);
  for (const train::DataSet& set : train::data_sets()) {
    SCOPED_TRACE(set.name);
    EXPECT_THROW(set.check("/no/such/place"), Error);
    EXPECT_FALSE(set.place.empty());
    EXPECT_FALSE(set.to_get.empty());
  }
}

}  // namespace
}  // namespace tenon::test
