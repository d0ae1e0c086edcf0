// The tree of modules at the peak: each module, and the model above all, has what is below it.
#include <tenon/memory/watch/attribution.h>
#include <tenon/report/run/attribution_report.h>
#include <tenon/tenon.h>
#include <tenon/train/step/run_attribution.h>

#include <gmock/gmock.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

TEST(ModuleTree, AModuleHasWhatIsBelowIt) {
  const std::vector<ModuleMemory> tree =
      module_tree({{"encoder.layer.0", "linear", "forward", Purpose::kActivation, 100, 1},
                   {"encoder.layer.1", "linear", "forward", Purpose::kActivation, 50, 1},
                   {"encoder.layer.1", "", "other", Purpose::kParameter, 7, 1},
                   {"", "cat", "data", Purpose::kData, 3, 1}});
  ASSERT_EQ(tree.size(), 5U);
  EXPECT_EQ(tree[0].module, "encoder");
  EXPECT_EQ(tree[0].activations, 150U);
  EXPECT_EQ(tree[0].all(), 157U);
  EXPECT_EQ(tree[3].module, "encoder.layer.1");
  EXPECT_EQ(tree[3].depth, 2U);
  EXPECT_EQ(tree[3].all(), 57U);
  EXPECT_EQ(tree[4].module, "");
  EXPECT_EQ(tree[4].other, 3U);
}

TEST(ModuleTree, TheRootHasAllModulesBelowIt) {
  std::vector<memory::AttributedBytes> rows = {{"Net", "add", "forward", Purpose::kActivation, 5, 1},
                                               {"body.0", "linear", "forward", Purpose::kActivation, 100, 1},
                                               {"Net", "", "other", Purpose::kParameter, 7, 1},
                                               {"", "cat", "data", Purpose::kData, 3, 1}};
  rows[0].is_root = rows[2].is_root = true;
  for (int i = 0; i < 3; ++i) rows[i].root = "Net";
  const std::vector<ModuleMemory> tree = module_tree(rows);
  ASSERT_EQ(tree.size(), 4U);
  EXPECT_EQ(tree[0].module, "Net");
  EXPECT_EQ(tree[0].depth, 0U);
  EXPECT_EQ(tree[0].activations, 105U);
  EXPECT_EQ(tree[0].all(), 112U);
  EXPECT_EQ(tree[1].module, "body");
  EXPECT_EQ(tree[1].depth, 1U);
  EXPECT_EQ(tree[2].depth, 2U);
  EXPECT_EQ(tree[3].module, "");
  EXPECT_EQ(tree[3].depth, 0U);
}

TEST(ModuleTree, OfSeveralRootsGivesEachItsOwn) {
  std::vector<memory::AttributedBytes> rows = {{"Net", "add", "forward", Purpose::kActivation, 5, 1},
                                               {"body.0", "linear", "forward", Purpose::kActivation, 100, 1},
                                               {"Loss", "sub", "forward", Purpose::kActivation, 7, 1},
                                               {"Loss.scale", "mul", "forward", Purpose::kActivation, 30, 1}};
  rows[0].is_root = rows[2].is_root = true;
  rows[0].root = rows[1].root = "Net";
  rows[2].root = rows[3].root = "Loss";
  std::string tree;
  for (const ModuleMemory& row : module_tree(rows))
    tree += std::string(2 * row.depth, ' ') + row.module + " " + std::to_string(row.all()) + "\n";
  EXPECT_EQ(tree,
            "Loss 37\n"
            "  Loss.scale 30\n"
            "Net 105\n"
            "  body 100\n"
            "    body.0 100\n");
}

struct ScaledImpl : nn::Module {
  ScaledImpl() {
    const PurposeGuard purpose(Purpose::kParameter);
    scale = register_parameter("scale", ones({8}));
    body = register_module("body", nn::Linear(64, 8));
  }
  Tensor forward(const Tensor& x) { return body(x) * scale; }
  Tensor scale;
  nn::Linear body{nullptr};
};
TENON_MODULE(Scaled);

TEST(ModuleTree, KnowsTheRootOfAModelByItsCallsAndByItsParameters) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  memory::Attribution attribution(stack, stack.stats());
  Scaled net;
  const Tensor kept = net(randn({4, 64}));
  train::name_owners(attribution, *net, nullptr);
  const memory::AttributionReport report = attribution.report();
  const auto of_root = [&](Purpose purpose) {
    std::size_t bytes = 0;
    for (const memory::AttributedBytes& row : report.live)
      if (row.is_root && row.purpose == purpose) bytes += row.bytes;
    return bytes;
  };
  EXPECT_EQ(of_root(Purpose::kParameter), 8U * 4);
  EXPECT_EQ(of_root(Purpose::kActivation), 4U * 8 * 4);
  for (const memory::AttributedBytes& row : report.live) EXPECT_EQ(row.is_root, row.module == "Scaled") << row.module;
  EXPECT_THAT(attribution_json(report), testing::HasSubstr("\"is_root\":true"));
  const std::vector<ModuleMemory> tree = module_tree(report.live);
  ASSERT_GE(tree.size(), 2U);
  EXPECT_EQ(tree[0].module, "Scaled");
  EXPECT_EQ(tree[0].parameters, (8U + 64 * 8 + 8) * 4);
}

/// Its weight is made before it is known what for.
struct RegisteredImpl : nn::Module {
  RegisteredImpl() { weight = register_parameter("weight", randn({100, 10})); }
  Tensor weight;
};
TENON_MODULE(Registered);

TEST(ModuleTree, AParameterIsItsModulesWhateverItWasMadeFor) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  memory::Attribution attribution(stack, stack.stats());
  {
    const Registered first, second;
    for (int round = 0; round < 2; ++round) {
      train::name_owners(attribution, *first, nullptr);
      attribution.check(stack.stats(), "named");
      std::size_t bytes = 0;
      for (const memory::AttributedBytes& row : attribution.report().live)
        if (row.module == "Registered") bytes += row.bytes;
      EXPECT_EQ(bytes, 100U * 10 * 4);
      const Tensor more = ones({1 << 20});  // the peak takes in what has changed
    }
  }
  attribution.check(stack.stats(), "ended");
  const memory::AttributionReport report = attribution.report();
  EXPECT_EQ(report.disagreement, "");
  for (const memory::AttributedBytes& row : report.live) EXPECT_NE(row.module, "Registered");
}

TEST(ModuleTree, WhatIsLoadedOrClonedIsOfTheSamePurpose) {
  const auto parameter_bytes = [] {
    return device_state(kCPU)
        .allocator()
        .stats()
        .requested_by_purpose[static_cast<std::size_t>(Purpose::kParameter)]
        .current;
  };
  nn::Linear layer(100, 100);
  const std::int64_t before = parameter_bytes();
  const auto clone = layer->clone();
  EXPECT_EQ(parameter_bytes() - before, (100 * 100 + 100) * 4);
  std::stringstream stream;
  save(layer, stream);
  load(layer, stream);
  EXPECT_EQ(parameter_bytes() - before, (100 * 100 + 100) * 4);
}

struct StudentImpl : ScaledImpl {};
TENON_MODULE(Student);

TEST(ModuleTree, TellsEqualPathsOfTwoModelsApart) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  memory::Attribution attribution(stack, stack.stats());
  Scaled teacher;
  Student student;
  const Tensor kept = teacher->forward(randn({4, 64}));  // nobody sees this call, but the layer inside of it
  student(randn({2, 64})).sum().backward();
  train::name_owners(attribution, *teacher, nullptr);
  train::name_owners(attribution, *student, nullptr);
  const memory::AttributionReport report = attribution.report();
  std::map<std::string, std::size_t> activations, gradients;
  for (const memory::AttributedBytes& row : report.live) {
    if (row.purpose == Purpose::kActivation) activations[row.module] += row.bytes;
    if (row.purpose == Purpose::kGradient) gradients[row.module] += row.bytes;
  }
  EXPECT_GE(activations["Scaled.body"], 4U * 8 * 4);
  EXPECT_EQ(activations["body"], 0U) << "a path of both says which it is of";
  EXPECT_EQ(gradients["Student.body"], (64U * 8 + 8) * 4);
  std::map<std::string, ModuleMemory> tree;
  for (const ModuleMemory& row : module_tree(report.live)) tree[row.module] = row;
  for (const char* root : {"Scaled", "Student"}) {
    EXPECT_EQ(tree[root].parameters, (8U + 64 * 8 + 8) * 4) << root;
    EXPECT_EQ(tree[root].depth, 0U);
    EXPECT_EQ(tree[root + std::string(".body")].parameters, (64U * 8 + 8) * 4) << root;
    EXPECT_EQ(tree[root + std::string(".body")].depth, 1U);
  }
}

/// One layer in three places of a model: it is called under the first of them, so its parameters are there too.
struct SharingImpl : nn::Module {
  SharingImpl() {
    encoder = register_module("encoder", nn::Sequential(layer, nn::ReLU()));
    decoder = register_module("decoder", nn::Sequential(layer));
    register_module("shared", layer);
  }
  Tensor forward(const Tensor& input) { return layer(decoder->forward(encoder->forward(input))); }
  nn::Linear layer{64, 64};
  nn::Sequential encoder{nullptr}, decoder{nullptr};
};
TENON_MODULE(Sharing);

TEST(ModuleTree, ALayerInSeveralPlacesHasItsParametersWhereItIsCalled) {
  AllocatorStack& stack = device_state(kCPU).allocator();
  memory::Attribution attribution(stack, stack.stats());
  Sharing model;
  optim::AdamW optimizer(model->layer->parameters(), optim::AdamWOptions(1e-3));
  const Tensor kept = model(randn({4, 64}));
  kept.sum().backward();
  optimizer.step();
  train::name_owners(attribution, *model, &optimizer);
  std::map<std::string, ModuleMemory> tree;
  for (const ModuleMemory& row : module_tree(attribution.report().live)) tree[row.module] = row;
  const std::size_t bytes = (64 * 64 + 64) * 4;
  EXPECT_GE(tree["encoder.0"].activations, 4U * 64 * 4);
  EXPECT_EQ(tree["encoder.0"].parameters, bytes);
  EXPECT_EQ(tree["encoder.0"].gradients, bytes);
  EXPECT_EQ(tree["encoder.0"].optimizer_states, 2 * bytes);
  EXPECT_EQ(tree.count("shared") + tree.count("decoder"), 0U);
}

}  // namespace
}  // namespace tenon::test
