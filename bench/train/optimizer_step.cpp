// What a step of AdamW takes where its states are in 8 bits, in host memory, or both, beside one whose states are as
// they are made: a row of Markdown for each. The parameters are those of a gpt of 10.7 million, and each kind takes its
// turn in every round, so that what else the machine does meets all of them.
//   tenon_optimizer_step [DEVICE] [ROUNDS]      cpu, or simulated:0, a device with memory of its own
#include <tenon/core/seconds_since.h>
#include <tenon/device/device_state.h>
#include <tenon/device/memory_api.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adam.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/tensor/generator.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tenon;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kWidth = 384, kLayers = 6, kSymbols = 95, kPositions = 128;

/// Matrices and rows of each block, the table and the positions.
std::vector<Tensor> parameters_on(Device device) {
  std::vector<std::vector<std::int64_t>> sizes = {{kSymbols, kWidth}, {kPositions, kWidth}};
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    sizes.insert(sizes.end(), {{3 * kWidth, kWidth},
                               {3 * kWidth},
                               {kWidth, kWidth},
                               {kWidth},
                               {4 * kWidth, kWidth},
                               {4 * kWidth},
                               {kWidth, 4 * kWidth},
                               {kWidth},
                               {kWidth},
                               {kWidth},
                               {kWidth},
                               {kWidth}});
  }
  std::vector<Tensor> parameters;
  for (const auto& size : sizes) {
    const Tensor values = randn(size).mul_(0.02).to(device);
    parameters.push_back(values.detach().requires_grad_());
    parameters.back().mutable_grad() = randn(size).mul_(1e-3).to(device);
  }
  return parameters;
}

struct Kind {
  const char* name;
  optim::StateStorageOptions options;
  std::unique_ptr<optim::AdamW> optimizer = nullptr;
  std::vector<double> milliseconds{};
  std::int64_t state_bytes = 0;
};

std::int64_t live(Device device, Purpose purpose) {
  return memory_by_purpose(device)[static_cast<std::size_t>(purpose)].requested_bytes.current;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "cpu";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const bool is_host = name == "cpu";
  if (!is_host) set_backend_option("simulated", "mode", std::string("backed"));
  const Device device(name);
  manual_seed(3);
  std::vector<Kind> kinds;
  kinds.push_back({"as they are made", {}});
  kinds.push_back({"8 bits", {.in_8_bits = true}});
  if (!is_host) {
    kinds.push_back({"in host memory", {.on_host = true}});
    kinds.push_back({"8 bits in host memory", {.in_8_bits = true, .on_host = true}});
  }
  for (Kind& kind : kinds) {
    const std::int64_t before = live(device, Purpose::kOptimizerState);
    kind.optimizer = std::make_unique<optim::AdamW>(parameters_on(device), optim::AdamWOptions(1e-4));
    kind.optimizer->store_states(kind.options);
    for (int warmup = 0; warmup < 2; ++warmup) kind.optimizer->step();
    kind.state_bytes = live(device, Purpose::kOptimizerState) - before;
  }
  for (int round = 0; round < rounds; ++round) {
    for (Kind& kind : kinds) {
      const auto start = Clock::now();
      kind.optimizer->step();
      device_state(device).driver().synchronize();
      kind.milliseconds.push_back(1000 * seconds_since(start));
    }
  }
  fmt::print(
      "| states on {} | MiB between steps | ms a step, median | least | most | against the first |\n"
      "|---|---:|---:|---:|---:|---:|\n",
      name);
  double first = 0;
  for (Kind& kind : kinds) {
    std::ranges::sort(kind.milliseconds);
    const double median = kind.milliseconds[kind.milliseconds.size() / 2];
    if (first == 0) first = median;
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |\n", kind.name,
               static_cast<double>(kind.state_bytes) / (1 << 20), median, kind.milliseconds.front(),
               kind.milliseconds.back(), median / first);
  }
}
