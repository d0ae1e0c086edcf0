// A deep convolutional generative adversarial network (Radford et al., 2015): a generator learns to draw clothes that a
// discriminator takes for photographs. Leaves samples and both networks in files.
//   dcgan [FOLDER [EPOCHS [STEPS OF EACH]]]
#include <tenon/tenon.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

namespace {

namespace nn = tenon::nn;
constexpr std::int64_t kNoise = 100, kBatch = 64;

nn::ConvTranspose2dOptions up(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return nn::ConvTranspose2dOptions(in, out, kernel).bias(false);
}
nn::Conv2dOptions down(std::int64_t in, std::int64_t out) {
  return nn::Conv2dOptions(in, out, 4).stride(2).padding(1).bias(false);
}

nn::Sequential make_generator() {  // (N, kNoise, 1, 1) -> (N, 1, 28, 28) in (-1, 1)
  return nn::Sequential(nn::ConvTranspose2d(up(kNoise, 256, 4)), nn::BatchNorm2d(256), nn::ReLU(),
                        nn::ConvTranspose2d(up(256, 128, 3).stride(2).padding(1)), nn::BatchNorm2d(128), nn::ReLU(),
                        nn::ConvTranspose2d(up(128, 64, 4).stride(2).padding(1)), nn::BatchNorm2d(64), nn::ReLU(),
                        nn::ConvTranspose2d(up(64, 1, 4).stride(2).padding(1)), nn::Tanh());
}

nn::Sequential make_discriminator() {  // (N, 1, 28, 28) -> (N, 1, 1, 1): the probability of a photograph
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)); };
  return nn::Sequential(nn::Conv2d(down(1, 64)), leaky(), nn::Conv2d(down(64, 128)), nn::BatchNorm2d(128), leaky(),
                        nn::Conv2d(down(128, 256)), nn::BatchNorm2d(256), leaky(),
                        nn::Conv2d(nn::Conv2dOptions(256, 1, 3).bias(false)), nn::Sigmoid());
}

}  // namespace

int main(int count, char** words) {
  const std::string folder = count > 1 ? words[1] : "/usr/share/datasets/fashion-mnist";
  const int epochs = count > 2 ? std::atoi(words[2]) : 1;
  const int most = count > 3 ? std::atoi(words[3]) : std::numeric_limits<int>::max();

  tenon::manual_seed(1);
  nn::Sequential generator = make_generator(), discriminator = make_discriminator();
  auto set = tenon::data::datasets::MNIST(folder)
                 .map(tenon::data::transforms::Normalize<>(0.5, 0.5))
                 .map(tenon::data::transforms::Stack<>());
  auto loader = tenon::data::make_data_loader(std::move(set), kBatch);
  const auto options = [](double lr) { return tenon::optim::AdamOptions(lr).betas(std::make_tuple(0.5, 0.999)); };
  tenon::optim::Adam generator_optimizer(generator->parameters(), options(2e-4));
  tenon::optim::Adam discriminator_optimizer(discriminator->parameters(), options(2e-4));
  const auto noise = [](std::int64_t n) { return tenon::randn({n, kNoise, 1, 1}); };

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    int step = 0;
    for (auto& batch : *loader) {
      if (++step > most) break;
      const tenon::Tensor& real = batch.data;
      const tenon::Tensor real_labels = tenon::empty(real.size(0)).uniform_(0.8, 1.0);
      const tenon::Tensor fake_labels = tenon::zeros(real.size(0));
      discriminator->zero_grad();
      const tenon::Tensor fake = generator->forward(noise(real.size(0)));
      const tenon::Tensor d_loss =
          tenon::binary_cross_entropy(discriminator->forward(real).view({-1}), real_labels) +
          tenon::binary_cross_entropy(discriminator->forward(fake.detach()).view({-1}), fake_labels);
      d_loss.backward();
      discriminator_optimizer.step();
      generator->zero_grad();
      const tenon::Tensor g_loss =
          tenon::binary_cross_entropy(discriminator->forward(fake).view({-1}), fake_labels.fill_(1));
      g_loss.backward();
      generator_optimizer.step();
      if (step % 100 == 0 || step == most)
        std::printf("epoch %d, step %d: D %.4f, G %.4f\n", epoch, step, d_loss.item<double>(), g_loss.item<double>());
    }
    tenon::NoGradGuard no_grad;
    generator->eval();
    tenon::save(generator->forward(noise(kBatch)), "samples-" + std::to_string(epoch) + ".safetensors");
    generator->train();
  }
  tenon::save(generator, "generator.safetensors");
  tenon::save(discriminator, "discriminator.safetensors");
}
