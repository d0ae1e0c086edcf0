// An inference step that has run before takes nothing from the heap of C++: its tensors' objects are recycled, their
// memory is the allocator's. A program of its own, since it replaces the global operator new. What oneDNN takes in each
// of its own calls is counted apart: it is nobody's to save.
#include <tenon/core/export.h>
#include <tenon/tenon.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

namespace {
std::atomic<long> taken{0}, taken_by_onednn{0};

/// `caller` is the address that operator new returns to.
void count(void* caller) {
  Dl_info file{};
  const bool is_onednn = dladdr(caller, &file) != 0 && file.dli_fname != nullptr &&
                         std::string_view(file.dli_fname).find("libdnnl") != std::string_view::npos;
  (is_onednn ? taken_by_onednn : taken).fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  count(__builtin_return_address(0));
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t& /*none*/) noexcept {
  count(__builtin_return_address(0));
  return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t& /*none*/) noexcept { std::free(memory); }

namespace tenon {
namespace {

class WarmInference : public testing::Test {
 protected:
  void SetUp() override {
    if (kIsSanitized) GTEST_SKIP() << "under a sanitizer every object comes from the heap";
  }
};

/// What `step` takes from the heap once it has run a few times.
template <class Step>
long taken_when_warm(Step step) {
  const NoGradGuard no_grad;
  for (int i = 0; i < 5; ++i) step();
  const long before = taken.load();
  step();
  return taken.load() - before;
}

TEST_F(WarmInference, OfAPerceptronTakesNothing) {
  nn::Sequential model(nn::Linear(64, 32), nn::ReLU(), nn::Dropout(0.1), nn::Linear(32, 32), nn::GELU(),
                       nn::Linear(32, 10), nn::Softmax(-1));
  model->eval();
  const Tensor x = randn({1, 64});
  EXPECT_EQ(taken_when_warm([&] { model->forward(x); }), 0);
}

TEST_F(WarmInference, OfATransformersBlockTakesNothing) {
  nn::Embedding embedding(100, 32);
  nn::LayerNorm norm(nn::LayerNormOptions({32}));
  nn::Linear queries(32, 96), out(32, 32), wide(32, 128), narrow(128, 32);
  const Tensor symbols = randint(0, 100, {1, 8}, TensorOptions().dtype(kInt64));
  EXPECT_EQ(taken_when_warm([&] {
              Tensor x = embedding(symbols);
              const Tensor qkv = queries(norm(x)).view({1, 8, 3, 4, 8}).permute({2, 0, 3, 1, 4});
              const Tensor y = scaled_dot_product_attention(qkv.select(0, 0), qkv.select(0, 1), qkv.select(0, 2));
              x = x + out(y.transpose(1, 2).reshape({1, 8, 32}));
              x = x + narrow(gelu(wide(norm(x))));
              return cat({x, x.mul(2)}, -1).argmax(-1);
            }),
            0);
}

/// A model of experiments on a batch of one, and what it reads.
struct Small {
  explicit Small(const std::string& name) {
    Options options(training_sections().front().options);
    options.set_text("name", name);
    const bool reads_text = name == "gpt";
    const train::DataShape text{.vocabulary = 11, .context = 16}, pictures{};
    model = train::make_model({.options = options, .data = reads_text ? text : pictures});
    model.module->eval();
    x = reads_text ? randint(0, 11, {1, 16}, TensorOptions().dtype(kInt64)) : randn({1, 1, 28, 28});
  }
  train::Model model;
  Tensor x;
};

TEST_F(WarmInference, OfTheModelsOfExperimentsTakesNothing) {
  for (const std::string name : {"mlp", "gpt", "lenet", "resnet8"}) {
    SCOPED_TRACE(name);
    Small small(name);
    EXPECT_EQ(taken_when_warm([&] { small.model.forward(small.x); }), 0);
  }
}

TEST_F(WarmInference, TakesNothingThroughOneDnnWithoutConvolutions) {
  for (const std::string name : {"mlp", "gpt"}) {
    SCOPED_TRACE(name);
    Small small(name);
    const NoGradGuard no_grad;
    for (int i = 0; i < 5; ++i) small.model.forward(small.x);
    const long before = taken_by_onednn.load();
    small.model.forward(small.x);
    EXPECT_EQ(taken_by_onednn.load() - before, 0);
  }
}

TEST_F(WarmInference, IsCountedHere) {
  EXPECT_GT(taken_when_warm([] { return std::vector<int>(100).size(); }), 0);
}

}  // namespace
}  // namespace tenon
