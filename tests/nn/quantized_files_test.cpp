// Files of models on integers and of floats, read into models of another scheme and of another width.
#include "../support/message_of.h"
#include "../support/scratch_folder.h"

#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

namespace q = nn::quantization;
using ::testing::HasSubstr;

nn::Sequential linear_layers(std::int64_t width) {
  manual_seed(3);
  nn::Sequential model(nn::Linear(32, width), nn::Linear(width, 8));
  model->eval();
  return model;
}

struct FileScheme {
  const char* name;
  void (*apply)(nn::Module& model);
};
const FileScheme kFileSchemes[] = {
    {"float", [](nn::Module&) {}},
    {"dynamic", [](nn::Module& model) { q::quantize_dynamic(model); }},
    {"8 bits", [](nn::Module& model) { q::quantize_weights(model, 8); }},
    {"4 bits, 16", [](nn::Module& model) { q::quantize_weights(model, 4, 16); }},
    {"4 bits, 8", [](nn::Module& model) { q::quantize_weights(model, 4, 8); }},
};

/// Everything that a model is, to the bit.
std::vector<Tensor> values_of(const nn::Module& model) {
  std::vector<Tensor> values;
  for (const auto& tensors : {model.parameters(), model.buffers()})
    for (const Tensor& tensor : tensors) values.push_back(tensor.detach().clone());
  return values;
}
bool are_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.dtype() == y.dtype() && x.sizes() == y.sizes() && x.equal(y);
  });
}

TEST(QuantizedFile, AFileOfAnotherSchemeIsRefusedBeforeAnythingChanges) {
  const std::string file = scratch_folder() + "model.safetensors";
  NoGradGuard no_grad;
  for (const FileScheme& saved : kFileSchemes) {
    nn::Sequential from = linear_layers(48);
    saved.apply(*from);
    tenon::save(from, file);
    for (const FileScheme& there : kFileSchemes) {
      nn::Sequential into = linear_layers(48);
      for (Tensor& parameter : into->parameters()) parameter.mul_(2);
      there.apply(*into);
      const std::vector<Tensor> before = values_of(*into);
      if (std::string_view(saved.name) == there.name) {
        tenon::load(into, file);
        EXPECT_TRUE(are_same(values_of(*into), values_of(*from))) << saved.name;
        continue;
      }
      EXPECT_THAT(message_of([&] { tenon::load(into, file); }),
                  testing::AllOf(HasSubstr("'0."), HasSubstr("nn::quantization::load()")))
          << saved.name << " into " << there.name;
      EXPECT_TRUE(are_same(values_of(*into), before)) << saved.name << " into " << there.name;
    }
  }
}

TEST(QuantizedFile, AFileOfAnotherWidthIsRefusedBeforeAnythingChanges) {
  const std::string file = scratch_folder() + "model.safetensors";
  NoGradGuard no_grad;
  for (const FileScheme& saved : kFileSchemes) {
    for (const auto& [width, other] : {std::pair{48, 64}, std::pair{64, 48}}) {
      nn::Sequential from = linear_layers(width), into = linear_layers(other);
      saved.apply(*from);
      tenon::save(from, file);
      const std::vector<Tensor> before = values_of(*into);
      EXPECT_THAT(message_of([&] { q::load(*into, file); }),
                  testing::AllOf(HasSubstr("'0.weight'"), HasSubstr(std::to_string(width)),
                                 HasSubstr(std::to_string(other)), HasSubstr("make the model as it was")))
          << saved.name;
      EXPECT_TRUE(are_same(values_of(*into), before)) << saved.name;
      EXPECT_EQ(q::quantized_layers(*into), 0);
    }
  }
}

// Seven weights of 4 bits take the bytes of eight.
TEST(QuantizedFile, RowsThatEndWithinAByteAreNotReadAsLongerOnes) {
  const std::string file = scratch_folder() + "model.safetensors";
  NoGradGuard no_grad;
  for (const auto& [width, other] : {std::pair{7, 8}, std::pair{8, 7}}) {
    nn::Sequential from{nn::Linear(width, 4)}, into{nn::Linear(other, 4)}, same{nn::Linear(width, 4)};
    for (auto* const model : {&from, &into, &same}) (*model)->eval();
    q::quantize_weights(*from, 4);
    tenon::save(from, file);
    std::vector<Tensor> before = values_of(*into);
    EXPECT_THAT(message_of([&] { q::load(*into, file); }),
                testing::AllOf(HasSubstr("is of (4, " + std::to_string(width) + ")"),
                               HasSubstr("of (4, " + std::to_string(other) + ")")));
    EXPECT_TRUE(are_same(values_of(*into), before));
    q::quantize_weights(*into, 4);
    before = values_of(*into);
    EXPECT_THAT(message_of([&] { tenon::load(into, file); }), HasSubstr("half of a row's last byte unused"));
    EXPECT_TRUE(are_same(values_of(*into), before));
    q::load(*same, file);
    EXPECT_TRUE(are_same(values_of(*same), values_of(*from)));
    const Tensor x = tenon::randn({3, width});
    EXPECT_TRUE(same->forward(x).equal(from->forward(x)));
    EXPECT_TRUE(std::dynamic_pointer_cast<nn::SequentialImpl>(same->clone())->forward(x).equal(from->forward(x)));
  }
}

}  // namespace
}  // namespace tenon::test
