// Cost of mapping: on a device whose every call for memory takes 30 microseconds of its own time, the first step of a
// training takes at most twice what it takes under `expandable`, and a warm step takes the device no time at all.
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

/// A device with a clock of its own, which its calls alone advance.
class ClockedSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  std::int64_t us = 0;

  void* acquire(std::size_t bytes) override { return called(), upstream_.acquire(bytes); }
  void release(void* address, std::size_t bytes) noexcept override { called(), upstream_.release(address, bytes); }
  void* reserve(std::size_t bytes) override { return called(), upstream_.reserve(bytes); }
  void unreserve(void* address, std::size_t bytes) noexcept override { called(), upstream_.unreserve(address, bytes); }
  Physical create(std::size_t bytes) override { return called(), upstream_.create(bytes); }
  void destroy(Physical physical, std::size_t bytes) noexcept override { called(), upstream_.destroy(physical, bytes); }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    called(), upstream_.map(address, bytes, physical, offset);
  }
  void unmap(void* address, std::size_t bytes) noexcept override { called(), upstream_.unmap(address, bytes); }

 private:
  void called() noexcept { us += 30; }
};

/// A model that is trained with Adam: what each layer has, keeps for its gradient and works with.
struct Model {
  std::string name;
  int layers = 0;
  std::size_t weights = 0, activations = 0, workspace = 0;
};
constexpr unsigned kDrawnSeed = 47;

const Model kMlp{"mlp", 3, 800 * KiB, 256 * KiB, 64 * KiB};
const Model kLenet{"lenet", 5, 300 * KiB, 1700 * KiB, 5 * MiB};
const Model kResnet{"resnet", 20, 2300 * KiB, 6400 * KiB, 9 * MiB};
const Model kGpt{"gpt", 24, 1100 * KiB, 2900 * KiB, 700 * KiB};
const Model kGptMedium{"gpt medium", 48, 9 * MiB, 13 * MiB, 11 * MiB};

/// Microseconds of the device in each step; in the first one the model is made, and what Adam remembers.
std::vector<std::int64_t> trained(const Model& model, const char* spec, int steps) {
  AddressOnlySource device;
  ClockedSource source(device);
  const StackConfig policy = allocator_from_spec(spec);
  const auto allocator = policy.policy.create({.source = source, .options = policy.options});
  const auto take = [&](std::size_t bytes) { return allocator->allocate({.bytes = bytes}); };
  const auto give = [&](const Block& block) { allocator->deallocate(block, block.request.stream); };
  const auto of = [](std::size_t bytes, int layer) { return bytes * static_cast<std::size_t>(2 + layer % 3) / 3; };
  std::vector<Block> kept, activations, gradients;
  std::vector<std::int64_t> times;
  for (int layer = 0; layer < model.layers; ++layer) {
    kept.push_back(take(of(model.weights, layer)));
    kept.push_back(take(4 * KiB));  // its bias
  }
  for (int step = 0; step < steps; ++step) {
    const std::int64_t before = step == 0 ? 0 : source.us;
    for (int layer = 0; layer < model.layers; ++layer) {
      activations.push_back(take(of(model.activations, layer)));
      give(take(model.workspace));
    }
    for (int layer = model.layers; layer-- > 0;) {
      gradients.push_back(take(of(model.weights, layer)));
      const Block gradient = take(of(model.activations, layer));
      give(take(model.workspace));
      give(activations.back());
      activations.pop_back();
      give(gradient);
    }
    for (int layer = 0; step == 0 && layer < 2 * model.layers; ++layer) kept.push_back(take(of(model.weights, layer)));
    for (const Block& gradient : gradients) give(gradient);
    gradients.clear();
    allocator->check_invariants();
    times.push_back(source.us - before);
  }
  for (const Block& block : kept) give(block);
  return times;
}

struct Policy {
  const char* spec;
  std::vector<Model> models;
};

void PrintTo(const Policy& policy, std::ostream* out) { *out << policy.spec; }

class MappingCost : public testing::TestWithParam<Policy> {};

TEST_P(MappingCost, OfAFirstStepIsAtMostTwiceThatOfExpandable) {
  for (const Model& model : GetParam().models)
    EXPECT_LE(trained(model, GetParam().spec, 1)[0], 2 * trained(model, "expandable", 1)[0]) << model.name;
}

/// Which sizes come in a step decides what fits where: a few models take more than twice, as nobody knows them.
TEST(MappingCostOfDrawnModels, InAFirstStepIsMoreThanTwiceForOneInTwentyAtMost) {
  SCOPED_TRACE(testing::Message() << "seed " << kDrawnSeed);
  std::mt19937_64 random(kDrawnSeed);
  const auto drawn = [&](double least, double most) {
    const double part = static_cast<double>(random() % 10'000) / 10'000;
    return static_cast<std::size_t>(least * std::pow(most / least, part));
  };
  int dear = 0;
  constexpr int kDrawn = 150;
  for (int i = 0; i < kDrawn; ++i) {
    const Model model{"drawn", static_cast<int>(drawn(3, 64)), drawn(64e3, 16e6) / 512 * 512,
                      drawn(64e3, 32e6) / 512 * 512, drawn(64e3, 32e6) / 512 * 512};
    const double ratio =
        static_cast<double>(trained(model, "mortise", 1)[0]) / static_cast<double>(trained(model, "expandable", 1)[0]);
    dear += ratio > 2 ? 1 : 0;
    EXPECT_LE(ratio, 4) << model.layers << " layers of " << model.weights << ", " << model.activations << ", "
                        << model.workspace << " bytes";
  }
  EXPECT_LE(dear, kDrawn / 20);
}

TEST_P(MappingCost, OfAWarmStepIsNone) {
  for (const Model& model : GetParam().models) {
    const std::vector<std::int64_t> times = trained(model, GetParam().spec, 6);
    EXPECT_GT(times[0], 0) << model.name;
    for (std::size_t step = 3; step < times.size(); ++step)
      EXPECT_EQ(times[step], 0) << model.name << ", step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, MappingCost,
                         testing::Values(Policy{"mortise", {kMlp, kLenet, kResnet, kGpt, kGptMedium}},
                                         Policy{"stitching", {kMlp, kLenet, kResnet, kGpt, kGptMedium}}),
                         [](const auto& tested) { return std::string(tested.param.spec); });

}  // namespace
}  // namespace tenon
