// Where tensors are: devices are chosen once, and the same code runs on whatever there is. Here the machine has three
// simulated devices.
#include <tenon/tenon.h>

#include <cstdio>

namespace {

/// The best kind that this machine has.
tenon::Device best_device() {
  for (const tenon::DeviceType kind : {tenon::kCUDA, tenon::kSimulated})
    if (tenon::is_available(kind)) return {kind, 0};
  return tenon::kCPU;
}

void show(const char* what, const tenon::Tensor& x) { std::printf("%-44s %s\n", what, x.device().str().c_str()); }

}  // namespace

int main() {
  tenon::set_backend_option("simulated", "count", 3);

  tenon::Device device = best_device();
  if (device.is_cuda()) device = tenon::Device("simulated:0");  // so that this program prints the same everywhere
  std::printf("%d devices of kind %s\n", tenon::device_count(device.type()), std::string(device.type().name()).c_str());

  const tenon::Tensor x = tenon::ones({2, 3});
  show("ones({2, 3})", x);
  show("x.to(device)", x.to(device));
  show("x.to(\"simulated:1\")", x.to("simulated:1"));
  show("ones({2, 3}, device)", tenon::ones({2, 3}, device));
  const tenon::Tensor y = x.to("simulated:2");
  show("y = x.to(\"simulated:2\")", y);
  show("y.new_ones({3, 4})", y.new_ones({3, 4}));
  std::printf("%-44s %d\n", "y.get_device()", static_cast<int>(y.get_device()));
  show("y.cpu()", y.cpu());

  {
    const tenon::DeviceGuard guard("simulated:1");
    show("under DeviceGuard(\"simulated:1\"), .to(kind)", x.to(tenon::Device(tenon::kSimulated)));
  }
  tenon::set_device("simulated:2");
  show("after set_device(\"simulated:2\"), .to(kind)", x.to(tenon::Device(tenon::kSimulated)));

  tenon::nn::Sequential model(tenon::nn::Linear(3, 8), tenon::nn::ReLU(), tenon::nn::Linear(8, 1));
  model->to(device);
  show("model->to(device); a parameter", model->parameters().front());
  show("model->forward(x.to(device))", model->forward(x.to(device)));
  try {
    y + x.to(device);
  } catch (const tenon::Error& error) {
    std::printf("y + x.to(device): %s\n", error.what());
  }
}
