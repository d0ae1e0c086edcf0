// The batch that train.batch_size = "auto" finds beside the one that trying every number finds, on addresses alone, and
// how long both take: a row of Markdown for each model and allocator.
#include <tenon/core/seconds_since.h>
#include <tenon/runtime/config/config.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace tenon;
using Clock = std::chrono::steady_clock;

struct Subject {
  const char* name;
  const char* model;
  const char* capacity;
  std::vector<std::string> settings;
  std::int64_t least = 1;  ///< an example for each part
};

const std::vector<Subject>& subjects() {
  static const std::vector<std::string> text{"data.name=\"text\"", "data.limit=2000", "data.test_limit=2",
                                             "train.test_batch_size=2"};
  const auto on_text = [](std::vector<std::string> more) {
    more.insert(more.end(), text.begin(), text.end());
    return more;
  };
  const std::vector<std::string> pictures{"data.limit=500", "data.test_limit=100", "train.test_batch_size=100"};
  static const std::vector<Subject> all = {
      {"lenet", "lenet", "32MiB", pictures},
      {"resnet18", "resnet18", "512MiB", pictures},
      {"unet", "unet", "2GiB", pictures},
      {"gpt", "gpt", "1GiB", on_text({"model.hidden=128", "model.layers=4", "model.heads=4", "model.context=128"})},
      {"gpt in 4 parts", "gpt", "256MiB",
       on_text({"model.hidden=128", "model.layers=4", "model.heads=4", "model.context=128", "train.micro_batches=4"}),
       4},
      {"gpt, loss in 7 chunks", "gpt", "1GiB",
       on_text({"model.hidden=128", "model.layers=4", "model.heads=4", "model.context=128", "train.chunked_loss=7"})},
      {"llama", "llama", "1GiB",
       on_text({"model.hidden=128", "model.layers=4", "model.heads=4", "model.context=128"})}};
  return all;
}

ExperimentConfig config_of(const Subject& subject, const std::string& allocator, const std::string& batch) {
  ConfigRequest request;
  request.overrides = {fmt::format("model.name=\"{}\"", subject.model),
                       fmt::format("allocator.name=\"{}\"", allocator),
                       "device.name=\"simulated:0\"",
                       "device.simulated.mode=\"address-only\"",
                       fmt::format("device.simulated.capacity=\"{}\"", subject.capacity),
                       "train.batch_size=" + batch};
  request.overrides.insert(request.overrides.end(), subject.settings.begin(), subject.settings.end());
  request.use_environment = false;
  request.sections = training_sections();
  return Config::load(request).experiment();
}

class Nobody final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
};

/// More than that no allocator has memory for: what `direct`, which rounds to 512 bytes, refuses.
std::int64_t most_of(const Subject& subject) {
  Nobody nobody;
  ExperimentConfig config = config_of(subject, "direct", "\"auto\"");
  return with_largest_batch(config, nobody)->batch_size;
}

void compare(const Subject& subject, const std::string& allocator, std::int64_t most) {
  Nobody nobody;
  ExperimentConfig config = config_of(subject, allocator, "\"auto\"");
  const auto start = Clock::now();
  const BatchChoice choice = *with_largest_batch(config, nobody);
  const double search = seconds_since(start);
  const auto fits = [&](std::int64_t n) {
    return !estimate_shortage(config_of(subject, allocator, std::to_string(n)));
  };
  const auto again = Clock::now();
  std::int64_t largest = 0, first_failed = 0;
  for (std::int64_t n = subject.least; n <= most; ++n) {
    if (fits(n)) {
      largest = n;
    } else if (first_failed == 0) {
      first_failed = n;
    }
  }
  const double every = seconds_since(again);
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {:.3f} |\n", subject.name, subject.capacity,
             allocator, choice.batch_size, largest, first_failed, choice.probes, search, every, search / every);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);  // models; all without any
  fmt::print(
      "| model | capacity | allocator | auto | every number | first that does not fit | runs | search s | every s | "
      "share |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Subject& subject : subjects()) {
    if (!wanted.empty() && std::ranges::find(wanted, subject.name) == wanted.end()) continue;
    const std::int64_t most = most_of(subject);
    for (const char* allocator : {"caching", "expandable", "mortise"}) compare(subject, allocator, most);
  }
}
