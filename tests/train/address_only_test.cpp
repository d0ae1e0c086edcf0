// A run on addresses alone asks its allocator for what the same run in earnest asks for, though its parameters are
// never drawn: every model, request by request, and every figure up to the first step.
#include "train/experiment_fixture.h"

#include <tenon/memory/layers/layer.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/parameter.h>
#include <tenon/train/model.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace tenon::test {
namespace {

/// What an allocator was asked for, less the workspace of kernels, and what it asked of the device until the first
/// step.
struct Asked {
  std::vector<std::string> requests;      ///< "allocate 1024 parameter", "free 1024 parameter", "step 1"
  std::vector<std::string> device_calls;  ///< "acquire 2097152"
  bool is_training = false;               ///< the first step has begun
};

class Listener final : public LayerAllocator {
 public:
  Listener(std::unique_ptr<Allocator> inner, Asked& asked) : LayerAllocator(std::move(inner)), asked_(asked) {}
  Block allocate(const Request& request) override {
    note("allocate", request);
    return LayerAllocator::allocate(request);
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    note("free", block.request);
    LayerAllocator::deallocate(block, last_use);
  }
  void mark(std::string_view name) override {
    asked_.requests.emplace_back(name);
    asked_.is_training = true;
  }

 private:
  void note(const char* what, const Request& request) {
    if (request.purpose == Purpose::kWorkspace) return;
    asked_.requests.push_back(std::string(what) + " " + std::to_string(request.bytes) + " " +
                              std::string(name_of(request.purpose)));
  }
  Asked& asked_;
};

class ListeningSource final : public ForwardingSource {
 public:
  ListeningSource(MemorySource& upstream, Asked& asked) : ForwardingSource(upstream), asked_(asked) {}
  void* acquire(std::size_t bytes) override {
    note("acquire", bytes);
    return ForwardingSource::acquire(bytes);
  }
  void release(void* address, std::size_t bytes) noexcept override {
    note("release", bytes);
    ForwardingSource::release(address, bytes);
  }
  Physical create(std::size_t bytes) override {
    note("create", bytes);
    return ForwardingSource::create(bytes);
  }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    note("map", bytes);
    ForwardingSource::map(address, bytes, physical, offset);
  }

 private:
  void note(const char* what, std::size_t bytes) {
    if (!asked_.is_training) asked_.device_calls.push_back(std::string(what) + " " + std::to_string(bytes));
  }
  Asked& asked_;
};

class AddressOnly : public Experiment {
 protected:
  void SetUp() override {
    Experiment::SetUp();
    write_letters(folder / "text", 4000);
  }

  /// Two steps and a test on simulated:0.
  Asked run_on(const std::string& mode, const std::string& model, const std::string& allocator) {
    return run_with({"device.name=\"simulated:0\"", "device.simulated.mode=\"" + mode + "\"",
                     "device.simulated.capacity=\"64GiB\""},
                    model, allocator);
  }

  /// Two steps and a test on a device that is given as on the command line.
  Asked run_with(std::vector<std::string> words, const std::string& model, const std::string& allocator) {
    Asked asked;
    add_private_layer(
        {.name = "listener",
         .summary = "",
         .options = {},
         .create = [&asked](std::unique_ptr<Allocator> inner,
                            const LayerContext&) { return std::make_unique<Listener>(std::move(inner), asked); },
         .wrap_source = [&asked](MemorySource& upstream,
                                 const LayerContext&) { return std::make_unique<ListeningSource>(upstream, asked); }});
    for (const std::string& word : std::vector<std::string>{
             "allocator.name=\"" + allocator + "\"", "model.name=\"" + model + "\"", "model.hidden=8", "model.layers=2",
             "model.heads=2", "model.context=16", "train.batch_size=2", "train.max_steps=2", "train.test_batch_size=2",
             "data.test_limit=2"}) {
      words.push_back(word);
    }
    if (reads_text(train::task_of(model))) {
      words.push_back("data.name=\"text\"");
      words.push_back("data.path=\"" + (folder / "text").string() + "\"");
    }
    change_config = [](ExperimentConfig& config) { config.allocator.layers.push_back({"listener", Options()}); };
    run(words);
    shutdown();  // the stack goes before what listens to it
    // At the end optimisers give their state back in the order of a hash table of addresses.
    const auto ending = std::ranges::find_if(asked.requests, [](const std::string& line) {
      return line.starts_with("free") && line.ends_with("optimizer_state");
    });
    EXPECT_NE(ending, asked.requests.end()) << "the optimiser had a state";
    asked.requests.erase(ending, asked.requests.end());
    return asked;
  }
};

TEST_F(AddressOnly, AsksForTheSameRequestByRequestInEveryModelAndSoDoesAMetaDevice) {
  for (const std::string& model : train::model_names()) {
    if (model == "moe") continue;  // its experts' parts are as large as values decide
    const Asked earnest = run_on("backed", model, "caching");
    ASSERT_GT(earnest.requests.size(), 100U) << model;
    for (const bool is_meta : {false, true}) {
      const Asked cheap =
          is_meta ? run_with({"device.name=\"meta\""}, model, "caching") : run_on("address-only", model, "caching");
      const auto [one, other] = std::ranges::mismatch(earnest.requests, cheap.requests);
      EXPECT_TRUE(one == earnest.requests.end() && other == cheap.requests.end())
          << model << " differs from request " << one - earnest.requests.begin()
          << " on: " << (one == earnest.requests.end() ? "the end" : *one) << " in earnest, "
          << (other == cheap.requests.end() ? "the end" : *other) << (is_meta ? " on meta" : " on addresses");
    }
  }
}

TEST_F(AddressOnly, ARunThatComputesNothingHasStepsAndMemoryAndNoLoss) {
  for (const std::vector<std::string>& device :
       {std::vector<std::string>{"device.name=\"meta\""},
        std::vector<std::string>{"device.name=\"simulated:0\"", "device.simulated.mode=\"address-only\""}}) {
    std::vector<std::string> settings = {"train.max_steps=3", "train.clip_grad_norm=1.0"};
    settings.insert(settings.end(), device.begin(), device.end());
    const ExperimentResult result = run(settings);
    EXPECT_EQ(result.steps, 3);
    EXPECT_THAT(result.losses, ::testing::Each(::testing::IsNan())) << device.front();
    ASSERT_EQ(result.epochs.size(), 1U);
    EXPECT_TRUE(std::isnan(result.test_accuracy)) << device.front();
    EXPECT_GT(result.memory.requested_bytes.peak, 0);
  }
}

TEST_F(AddressOnly, EveryAllocatorAsksTheDeviceForTheSameBeforeTheFirstStep) {
  for (const char* model : {"lenet", "resnet8", "lstm-lm", "gpt"}) {
    for (const char* allocator : {"direct", "caching", "expandable"}) {
      const Asked earnest = run_on("backed", model, allocator), cheap = run_on("address-only", model, allocator);
      EXPECT_FALSE(cheap.device_calls.empty()) << model << " under " << allocator;
      EXPECT_EQ(earnest.device_calls, cheap.device_calls) << model << " under " << allocator;
    }
  }
}

TEST_F(AddressOnly, ParametersWithoutMemoryAreForDevicesThatDoNotCompute) {
  shutdown();
  EXPECT_THROW(nn::ParametersWithoutMemory(Device(kCPU)), Error);
  nn::Linear after(2, 3);
  EXPECT_TRUE(after->weight.device().is_cpu()) << "a guard that could not be made leaves nothing behind";
}

}  // namespace
}  // namespace tenon::test
