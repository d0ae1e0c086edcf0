// A network on two devices: what the first half gives is moved to the second one's device, gradients come back the same
// way, and one device waits while the other computes. How long they would take on two V100 is what their cost model
// says.
#include <tenon/tenon.h>

#include <cstdio>

namespace {

using tenon::Device;
using tenon::Tensor;
namespace nn = tenon::nn;

const Device kFirst("simulated:0"), kSecond("simulated:1");

struct TwoDevicesImpl : nn::Module {
  TwoDevicesImpl() {
    encoder = register_module("encoder", nn::Sequential(nn::Linear(1024, 4096), nn::ReLU(), nn::Linear(4096, 1024)));
    decoder = register_module("decoder", nn::Sequential(nn::Linear(1024, 4096), nn::ReLU(), nn::Linear(4096, 1024)));
    encoder->to(kFirst);
    decoder->to(kSecond);
  }
  Tensor forward(const Tensor& x) { return decoder->forward(encoder->forward(x).to(kSecond)); }
  nn::Sequential encoder{nullptr}, decoder{nullptr};
};
TENON_MODULE(TwoDevices);

}  // namespace

int main() {
  tenon::set_backend_option("simulated", "count", 2);
  tenon::set_backend_option("simulated", "preset", "v100");
  TwoDevices model;
  tenon::optim::SGD optimizer(model->parameters(), tenon::optim::SGDOptions(0.01));
  const Tensor x = tenon::randn({256, 1024}).to(kFirst), y = tenon::randn({256, 1024}).to(kSecond);

  double begin = 0;
  for (int step = 0; step < 2; ++step) {  // the first one takes memory that the second finds
    for (const Device& device : {kFirst, kSecond}) {
      tenon::synchronize(device);
      tenon::reset_device_activity(device);
    }
    begin = tenon::virtual_time_us();
    optimizer.zero_grad();
    const Tensor loss = tenon::mse_loss(model(x), y);
    loss.backward();
    optimizer.step();
    for (const Device& device : {kFirst, kSecond}) tenon::synchronize(device);
  }
  const double step_us = tenon::virtual_time_us() - begin;

  for (const auto& parameter : model->named_parameters())
    std::printf("%-16s and its gradient on %s\n", parameter.key().c_str(),
                parameter.value().grad().device().str().c_str());
  std::printf("a step takes %.0f us\n", step_us);
  for (const Device& device : {kFirst, kSecond}) {
    const auto did = *tenon::device_activity(device);
    std::printf("%s: %lld kernels in %.0f us, %.2f MB sent or fetched in %.0f us, idle %.0f %%\n", device.str().c_str(),
                static_cast<long long>(did.kernels), did.kernel_us, did.copied_bytes / 1e6, did.copy_us,
                100 * (1 - did.kernel_us / step_us));
  }
}
