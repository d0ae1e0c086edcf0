// Peak live bytes of forward + backward of five small programs, as requested from the allocator. peak_memory_torch.py
// runs the same programs under PyTorch; bench/results/peak_memory.md has both columns.
#include <tenon/device/memory_api.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace tenon;

// The loss has a name and backward() a statement of its own, because temporaries of C++ live to the end of their full
// expression: in f(g(x)).backward() the value of g(x) would be held through backward. Python drops it earlier.

/// 784-256-256-10 with ReLU, batch 64, cross entropy.
std::function<void()> mlp() {
  nn::Linear first(784, 256), second(256, 256), third(256, 10);
  const Tensor x = randn({64, 784});
  const Tensor target = zeros({64}, kInt64);
  return [=]() mutable {
    Tensor h = first(x).relu();
    h = second(h).relu();
    h = third(h);
    const Tensor loss = cross_entropy_loss(h, target);
    loss.backward();
  };
}

/// Two convolutions with batch norm, ReLU and max pooling, then one linear layer; batch 8 of 3 x 32 x 32.
std::function<void()> convnet() {
  nn::Conv2d first(nn::Conv2dOptions(3, 16, 3).padding(1)), second(nn::Conv2dOptions(16, 32, 3).padding(1));
  nn::BatchNorm2d first_norm(16), second_norm(32);
  nn::Linear head(32 * 8 * 8, 10);
  const Tensor x = randn({8, 3, 32, 32});
  const Tensor target = zeros({8}, kInt64);
  return [=]() mutable {
    Tensor h = max_pool2d(first_norm(first(x)).relu(), 2);
    h = max_pool2d(second_norm(second(h)).relu(), 2);
    h = head(h.flatten(1));
    const Tensor loss = cross_entropy_loss(h, target);
    loss.backward();
  };
}

/// Pre-norm transformer block: 4 heads over 64 tokens of 128, batch 4; attention written out.
std::function<void()> attention() {
  nn::LayerNorm norm1(nn::LayerNormOptions({128})), norm2(nn::LayerNormOptions({128}));
  nn::Linear qkv(128, 384), out(128, 128), up(128, 512), down(512, 128);
  const Tensor x = randn({4, 64, 128});
  return [=]() mutable {
    const Tensor parts = qkv(norm1(x)).view({4, 64, 3, 4, 32}).permute({2, 0, 3, 1, 4});
    const Tensor q = parts[0], k = parts[1], v = parts[2];
    const Tensor weights = softmax(matmul(q, k.transpose(-2, -1)) * 0.17677669529663687, -1);
    Tensor h = x + out(matmul(weights, v).transpose(1, 2).reshape({4, 64, 128}));
    h = h + down(gelu(up(norm2(h))));
    const Tensor loss = h.square().mean();
    loss.backward();
  };
}

/// In-place writes, also through views, and a chain whose intermediates need not live.
std::function<void()> views_in_place() {
  const Tensor w = randn({256, 256}, requires_grad());
  const Tensor x = randn({256, 256});
  return [=] {
    Tensor y = x * w;
    y.narrow(1, 0, 128).mul_(2);
    y.select(0, 3).zero_();
    y.add_(1);
    Tensor z = y.transpose(0, 1).sin();
    z.mul_(0.5);
    z = z + 1;
    z = z.tanh();
    const Tensor loss = (z.reshape({-1}) * 3).sum();
    loss.backward();
  };
}

/// Tokens to a mean embedding to logits over the vocabulary: 32 sentences of 16 out of 1000 words.
std::function<void()> embedding() {
  nn::Embedding table(1000, 64);
  nn::Linear head(64, 1000);
  const Tensor tokens = arange(32 * 16, TensorOptions(kInt64)).view({32, 16});
  const Tensor target = zeros({32}, kInt64);
  return [=]() mutable {
    const Tensor loss = cross_entropy_loss(head(table(tokens).mean(1)), target);
    loss.backward();
  };
}

struct Program {
  const char* name;
  std::function<void()> (*make)();
};

}  // namespace

int main() {
  tenon::set_num_threads(1);
  for (const Program& program : {Program{"mlp", mlp}, Program{"convnet", convnet}, Program{"attention", attention},
                                 Program{"views_in_place", views_in_place}, Program{"embedding", embedding}}) {
    tenon::manual_seed(1);
    const std::function<void()> step = program.make();
    const auto requested = [](const char* which) {
      return static_cast<long long>(tenon::memory_stats().at(std::string("requested_bytes.all.") + which));
    };
    const long long before = requested("current");
    tenon::reset_peak_memory_stats();
    step();
    std::printf("%s,%lld,%lld,%lld\n", program.name, before, requested("peak"), requested("current"));
  }
}
