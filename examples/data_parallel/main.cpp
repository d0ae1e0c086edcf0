// Data parallelism over three devices: the network lives on the first, each device computes a third of the batch, and
// the outputs are gathered on the first, which needs more memory than the others. With the loss inside the forward pass
// outputs stay where they are.
#include <tenon/tenon.h>

#include <cstdio>
#include <tuple>
#include <vector>

namespace {

using tenon::Device;
using tenon::Tensor;
namespace nn = tenon::nn;

struct NetworkImpl : nn::Cloneable<NetworkImpl> {
  NetworkImpl() { reset(); }
  void reset() override {
    hidden = register_module("hidden", nn::Linear(32, 64));
    words = register_module("words", nn::Linear(64, 4000));
  }
  Tensor forward(const Tensor& x) { return words(hidden(x).relu()); }
  nn::Linear hidden{nullptr}, words{nullptr};
};
TENON_MODULE(Network);

struct NetworkWithLossImpl : nn::Cloneable<NetworkWithLossImpl> {
  NetworkWithLossImpl() { reset(); }
  void reset() override { network = register_module("network", Network()); }
  Tensor forward(const Tensor& x, const Tensor& target) {
    return tenon::cross_entropy_loss(network(x), target, {}, tenon::Reduction::None);
  }
  Network network{nullptr};
};
TENON_MODULE(NetworkWithLoss);

const std::vector<Device> kDevices = {"simulated:0", "simulated:1", "simulated:2"};

/// Three steps of training, and the peak of each device's memory.
template <class Model, class Loss>
void train(const char* what, Model model, Loss loss_of) {
  model->to(kDevices[0]);
  tenon::optim::SGD optimizer(model->parameters(), tenon::optim::SGDOptions(0.5));
  for (const Device& device : kDevices) tenon::reset_peak_memory_stats(device);
  std::printf("%s\n  losses", what);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(model).mean();
    loss.backward();
    optimizer.step();
    std::printf(" %.2f", loss.template item<double>());
  }
  std::printf("\n  peak MiB");
  for (const Device& device : kDevices)
    std::printf("  %s %.1f", device.str().c_str(),
                static_cast<double>(tenon::max_memory_allocated(device)) / (1 << 20));
  std::printf("\n");
}

}  // namespace

int main() {
  tenon::set_backend_option("simulated", "count", 3);
  tenon::manual_seed(1);
  Network network;
  NetworkWithLoss with_loss;
  tenon::nn::utils::vector_to_parameters(tenon::nn::utils::parameters_to_vector(network->parameters()),
                                         with_loss->parameters());
  const Tensor x = tenon::randn({480, 32}).to(kDevices[0]);
  const Tensor y = tenon::randint(0, 4000, {480}, tenon::kLong).to(kDevices[0]);

  train("the loss on the first device", network,
        [&](Network& model) { return tenon::cross_entropy_loss(nn::parallel::data_parallel(model, x, kDevices), y); });
  train("the loss inside the forward pass", with_loss,
        [&](NetworkWithLoss& model) { return nn::parallel::data_parallel(model, std::tuple(x, y), kDevices); });
}
