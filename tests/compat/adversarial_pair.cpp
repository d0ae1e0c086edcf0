// A generator and a discriminator with convolutions, as libtorch's users write them: nn::Module by hand, options,
// functional calls, two optimisers, saved state. A few steps: the discriminator must tell the two apart better than at
// the start.
#include <torch/torch.h>

#include <cstdio>
#include <sstream>

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct GeneratorImpl : nn::Module {
  explicit GeneratorImpl(int noise)
      : conv1(nn::ConvTranspose2dOptions(noise, 16, 4).bias(false)),
        norm1(16),
        conv2(nn::ConvTranspose2dOptions(16, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("conv1", conv1);
    register_module("norm1", norm1);
    register_module("conv2", conv2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm1(conv1(x)));
    return torch::tanh(conv2(x));
  }
  nn::ConvTranspose2d conv1;
  nn::BatchNorm2d norm1;
  nn::ConvTranspose2d conv2;
};
TORCH_MODULE(Generator);

int main() {
  torch::manual_seed(5);
  constexpr int kNoise = 8;
  constexpr int64_t kBatch = 16;
  Generator generator(kNoise);
  nn::Sequential discriminator(nn::Conv2d(nn::Conv2dOptions(1, 8, 3).stride(2).padding(1)),
                               nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
                               nn::Conv2d(nn::Conv2dOptions(8, 16, 3).stride(2).padding(1)), nn::Dropout2d(0.1),
                               nn::Flatten(), nn::Linear(64, 1));
  torch::optim::AdamW generator_steps(generator->parameters(), torch::optim::AdamWOptions(2e-3).betas({0.5, 0.999}));
  torch::optim::SGD discriminator_steps(discriminator->parameters(), torch::optim::SGDOptions(5e-2).momentum(0.9));

  const auto real = torch::linspace(-1, 1, 8).view({1, 1, 8, 1}).expand({kBatch, 1, 8, 8}).contiguous();
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    discriminator->zero_grad();
    const auto on_real = discriminator->forward(real + 0.1 * torch::randn_like(real));
    const auto loss_real = F::binary_cross_entropy_with_logits(on_real, torch::empty({kBatch, 1}).uniform_(0.8, 1.0));
    const auto fake = generator->forward(torch::randn({kBatch, kNoise, 1, 1}));
    const auto on_fake = discriminator->forward(fake.detach());
    const auto loss_fake = F::binary_cross_entropy_with_logits(on_fake, torch::zeros({kBatch, 1}));
    const auto loss = loss_real + loss_fake;
    loss.backward();
    discriminator_steps.step();

    generator->zero_grad();
    const auto fooled = discriminator->forward(fake).sigmoid();
    F::binary_cross_entropy(fooled, torch::ones({kBatch, 1})).backward();
    if (step % 3 == 0) generator_steps.step();

    if (step == 0) first = loss.item<double>();
    last = loss.item<double>();
  }

  std::stringstream state;
  torch::save(generator_steps, state);
  torch::optim::AdamW other(generator->parameters());
  torch::load(other, state);
  const auto samples = generator->forward(torch::randn({4, kNoise, 1, 1}));
  std::printf("loss %.3f -> %.3f, samples %s\n", first, last,
              samples.sizes() == torch::IntArrayRef({4, 1, 8, 8}) ? "ok" : "odd");
  return last < first && samples.sizes() == torch::IntArrayRef({4, 1, 8, 8}) ? 0 : 1;
}
