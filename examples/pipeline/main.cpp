// Pipelined model parallelism on a cost model: four stages, one on each of four A100, and how much of a step they wait,
// for more and more micro-batches and both schedules. Nothing is computed: the devices have addresses alone.
#include <tenon/tenon.h>

#include <cstdio>
#include <vector>

namespace {

using tenon::Device;
using tenon::Tensor;
namespace nn = tenon::nn;
using nn::parallel::PipelineSchedule;

constexpr int kStages = 4;
constexpr std::int64_t kWidth = 8192, kRows = 32'768;

std::vector<Device> devices() {
  std::vector<Device> all;
  for (int i = 0; i < kStages; ++i) all.emplace_back(tenon::kSimulated, static_cast<tenon::DeviceIndex>(i));
  return all;
}

void show(const char* name, PipelineSchedule schedule, std::int64_t micro_batches) {
  nn::Sequential model;
  for (int i = 0; i < kStages; ++i) model->push_back(nn::Linear(nn::LinearOptions(kWidth, kWidth).bias(false)));
  nn::parallel::Pipeline pipeline(model, devices(),
                                  nn::parallel::PipelineOptions().micro_batches(micro_batches).schedule(schedule));
  const Tensor x = tenon::empty({kRows, kWidth}, devices().front()).set_requires_grad(true);
  const Tensor y = tenon::empty({kRows, kWidth}, devices().back());
  const auto step = [&] {
    pipeline.step(x, y, [](const Tensor& output, const Tensor& target) { return tenon::mse_loss(output, target); });
    for (const Device& device : devices()) tenon::synchronize(device);
  };
  step();  // takes the memory
  for (const Device& device : devices()) tenon::reset_device_activity(device);
  const double begin = tenon::virtual_time_us();
  step();
  const double step_us = tenon::virtual_time_us() - begin;
  double busy = 0;
  for (const Device& device : devices()) busy += tenon::device_activity(device)->kernel_us / kStages;
  std::printf("%-6s %3lld micro-batches  step %5.1f ms  idle %4.1f %%  (p-1)/(m+p-1) %4.1f %%  peak GiB", name,
              static_cast<long long>(micro_batches), step_us / 1000, 100 * (1 - busy / step_us),
              100. * (kStages - 1) / static_cast<double>(micro_batches + kStages - 1));
  for (const auto& stage : pipeline.stages())
    std::printf(" %.1f", static_cast<double>(stage.peak_allocated_bytes) / (1 << 30));
  std::printf("\n");
}

}  // namespace

int main() {
  tenon::set_backend_option("simulated", "count", kStages);
  tenon::set_backend_option("simulated", "mode", "address-only");
  tenon::set_backend_option("simulated", "preset", "a100");
  for (const std::int64_t micro_batches : {1, 4, 16, 64}) {
    show("GPipe", PipelineSchedule::kGPipe, micro_batches);
    show("1F1B", PipelineSchedule::k1F1B, micro_batches);
  }
}
