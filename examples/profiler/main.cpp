// Where time and memory go: the profiler around some steps of training, its tables, and the files that other programs
// read.
//
//   build/release/examples/profiler [FOLDER]     with a folder: profile.chrome.json (ui.perfetto.dev, `tenon replay`),
//                                                profile.folded (flame graphs) and memory.trace are written there
#include <tenon/tenon.h>

#include <filesystem>
#include <iostream>
#include <string>

namespace nn = tenon::nn;
namespace profiler = tenon::profiler;

struct NetImpl : nn::Module {
  NetImpl() {
    features = register_module("features", nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 8, 3)), nn::ReLU(),
                                                          nn::MaxPool2d(2), nn::Flatten()));
    head = register_module("head", nn::Linear(8 * 13 * 13, 10));
  }
  tenon::Tensor forward(const tenon::Tensor& pictures) { return head(features->forward(pictures)); }
  nn::Sequential features;
  nn::Linear head{nullptr};
};
TENON_MODULE(Net);

int main(int argc, char** argv) {
  tenon::manual_seed(1);
  Net model;
  tenon::optim::AdamW optimizer(model->parameters(), tenon::optim::AdamWOptions(1e-3));

  // Of ten steps the first is left alone, the next is recorded and thrown away, and the three behind it are kept.
  profiler::profile profile({
      .record_shapes = true,
      .profile_memory = true,
      .with_flops = true,
      .schedule = profiler::schedule({.wait = 1, .warmup = 1, .active = 3, .repeat = 1}),
  });
  profile.start();
  for (int step = 0; step < 10; ++step) {
    tenon::Tensor pictures, classes;
    {
      const profiler::record_function label("make a batch");
      pictures = tenon::rand({32, 1, 28, 28});
      classes = tenon::randint(10, {32}, tenon::TensorOptions(tenon::kInt64));
    }
    optimizer.zero_grad(true);
    tenon::cross_entropy_loss(model(pictures), classes).backward();
    optimizer.step();
    profile.step();
  }
  profile.stop();

  std::cout << "Operators that allocate most:\n"
            << profile.key_averages().table({.sort_by = "self_cpu_memory_usage", .row_limit = 10})
            << "\nOperators that take longest, by the shapes of their operands:\n"
            << profile.key_averages(profiler::GroupBy::kShape).table({.sort_by = "self_cpu_time_total", .row_limit = 6})
            << "\nModules:\n"
            << profile.key_averages(profiler::GroupBy::kModule).table({.sort_by = "cpu_time_total"}) << "\nLabels:\n"
            << profile.key_averages(profiler::GroupBy::kLabel).table({.sort_by = "cpu_time_total"});

  if (argc < 2) return 0;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  profile.export_chrome_trace((folder / "profile.chrome.json").string());
  profile.export_stacks((folder / "profile.folded").string());
  profile.export_memory_history((folder / "memory.trace").string());
}
