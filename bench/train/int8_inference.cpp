// What a picture's forward pass takes on integers of 8 bits (static) beside floats, by the pictures at once: a row of
// Markdown for each. One thread, whose own time counts; both take turns in every round, so that what else the machine
// does meets both.
//   tenon_int8_inference [MODEL] [ROUNDS]      lenet, 15 rounds
#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/nn/quantization/quantize.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace tenon;
namespace q = nn::quantization;

double cpu_seconds() {
  std::timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

ExperimentConfig config_of(const std::string& model) {
  ConfigRequest request;
  request.overrides = {"model.name=\"" + model + "\"", "device.name=\"cpu\""};
  request.use_environment = false;
  request.sections = training_sections();
  return Config::load(request).experiment();
}

train::Model make(const ExperimentConfig& config) {
  manual_seed(47);
  train::Model model = train::make_model({.options = config.section("model"), .data = {}});
  model.module->eval();
  return model;
}

/// Microseconds a picture, of enough passes to be seen.
double microseconds(const train::Model& model, const Tensor& pictures) {
  constexpr double kLeast = 0.01;
  int passes = 0;
  const double start = cpu_seconds();
  double now = start;
  for (; now - start < kLeast; now = cpu_seconds(), ++passes) model.forward(pictures);
  return 1e6 * (now - start) / passes / static_cast<double>(pictures.size(0));
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "lenet";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const ExperimentConfig config = config_of(name);
  install(config);
  device_state(config.device).driver().set_threads(1);
  const NoGradGuard no_grad;
  const train::Model floats = make(config), integers = make(config);
  const Tensor examples = randn({64, 1, 28, 28});
  q::fuse_modules(*integers.module, q::groups_of_sequentials(*integers.module));
  q::prepare(*integers.module, q::get_default_qconfig("onednn"));
  integers.forward(examples);
  q::convert(*integers.module);
  fmt::print("| {} pictures | float32 us | int8 us | int8 is faster by |\n|---:|---:|---:|---:|\n", name);
  for (const std::int64_t batch : {1, 4, 16, 64, 128, 256, 1000}) {
    const Tensor pictures = randn({batch, 1, 28, 28});
    std::vector<double> of_floats, of_integers;
    for (int round = 0; round < rounds; ++round) {
      of_floats.push_back(microseconds(floats, pictures));
      of_integers.push_back(microseconds(integers, pictures));
    }
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} |\n", batch, median(of_floats), median(of_integers),
               median(of_floats) / median(of_integers));
    std::fflush(stdout);
  }
}
