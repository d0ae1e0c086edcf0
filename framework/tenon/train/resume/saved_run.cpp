// Saving and resuming a training run.
#include <tenon/train/resume/saved_figures.h>
#include <tenon/train/resume/saved_run.h>

#include <tenon/core/error.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/nn/serialize/safetensors_metadata.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model.h>
#include <tenon/train/step/mixed_precision.h>

#include <fmt/format.h>

#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {

std::vector<std::pair<std::string, std::string>> lasting_settings(const ExperimentConfig& config) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [name, value] : with_preset(config.section("model")).entries(/*only_changed=*/false))
    if (name != "dropout" && name != "preset") settings.emplace_back("model." + name, value);
  const Options& train = config.section("train");
  const Precision precision = precision_named(train.text("precision"));
  const bool is_scaled = precision.autocast == Dtype::kFloat16;
  settings.emplace_back("train.precision",
                        std::string(name_of(precision.parameters)) + (is_scaled ? " with a scaled loss" : ""));
  for (const auto& [name, value] : train.entries(/*only_changed=*/false))
    if (name == "master_weights" || name.starts_with("lora_")) settings.emplace_back("train." + name, value);
  return settings;
}

namespace {

void check_same(const std::filesystem::path& path, const char* what, std::int64_t then, std::int64_t now) {
  if (then == now) return;
  throw Error(fmt::format("'{}' is of a run with {} {}, this one has {}: its examples would come in another order",
                          path.string(), what, then, now));
}

/// "key=value" in lines.
std::string text_of(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string text;
  for (const auto& [key, value] : settings) text += fmt::format("{}={}\n", key, value);
  return text;
}

/// A file of before they were written has none.
void check_settings(const std::filesystem::path& path, const InputArchive& archive, const RunPosition& now) {
  const std::optional<std::string> text = archive.try_read_raw("settings");
  if (!text) return;
  std::map<std::string, std::string> then;
  std::istringstream lines(archive.read_text("settings"));
  for (std::string line; std::getline(lines, line);)
    then[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  for (const auto& [key, value] : now.settings) {
    const auto found = then.find(key);
    if (found == then.end() || found->second == value) continue;
    throw Error(fmt::format("'{}' is of a run with {} = {}, this one has {}: its parameters would not be the same",
                            path.string(), key, found->second, value));
  }
}

InputArchive header_of(const std::filesystem::path& path) {
  nn::TensorFile file;
  file.metadata = nn::safetensors_metadata(path);
  InputArchive archive;
  archive.load_from(std::move(file));
  return archive;
}

}  // namespace

void save_run(const std::filesystem::path& path, const RunParts& parts, const RunPosition& position,
              const ExperimentResult& so_far) {
  OutputArchive archive, model, state, random, figures;
  parts.module.save(model);
  parts.optimizer.save(state);
  const RandomStates generators = random_states();
  for (int i = 0; i < kMaxDeviceTypes; ++i) {
    random.write(fmt::format("seed{}", i), std::bit_cast<std::int64_t>(generators.states[i].seed));
    random.write(fmt::format("offset{}", i), std::bit_cast<std::int64_t>(generators.states[i].offset));
  }
  archive.write("model", model);
  archive.write("optimizer", state);
  if (parts.scaler.is_enabled()) {
    OutputArchive scale;
    parts.scaler.save(scale);
    archive.write("scaler", scale);
  }
  if (parts.masters != nullptr) {
    OutputArchive masters;
    parts.masters->save(masters);
    archive.write("masters", masters);
  }
  archive.write("random", random);
  write_figures(figures, so_far);
  archive.write("figures", figures);
  archive.write("steps", position.steps);
  archive.write("epoch", position.epoch);
  archive.write("epoch_loss_sum", position.epoch_loss_sum);
  archive.write("epoch_seconds", position.epoch_seconds);
  archive.write("seed", position.seed);
  archive.write("batch_size", position.batch_size);
  archive.write("examples", position.examples);
  archive.write_text("settings", text_of(position.settings));
  archive.save_to(path.string());
}

RunPosition load_run(const std::filesystem::path& path, const RunParts& parts, const RunPosition& now,
                     ExperimentResult* so_far) {
  InputArchive archive, model, state, random, figures;
  const std::vector<Tensor> parameters = parts.module.parameters();
  archive.copy_from(path.string(), parameters.empty() ? Device(kCPU) : parameters.front().device());
  RunPosition position;
  position.steps = archive.read_integer("steps");
  position.epoch = static_cast<int>(archive.read_integer("epoch"));
  position.epoch_loss_sum = archive.read_real("epoch_loss_sum");
  position.epoch_seconds = archive.read_real("epoch_seconds");
  check_same(path, "seed", position.seed = archive.read_integer("seed"), now.seed);
  check_same(path, "batch size", position.batch_size = archive.read_integer("batch_size"), now.batch_size);
  check_same(path, "training examples", position.examples = archive.read_integer("examples"), now.examples);
  check_settings(path, archive, now);
  archive.read("model", model);
  archive.read("optimizer", state);
  archive.read("random", random);
  if (so_far != nullptr) {
    archive.read("figures", figures);
    *so_far = read_figures(figures);
  }
  if (parts.masters != nullptr) {
    InputArchive masters;
    if (!archive.try_read("masters", masters))
      throw Error(fmt::format("'{}' is of a run without train.master_weights", path.string()));
    parts.masters->load(masters);
  }
  if (parts.scaler.is_enabled()) {
    InputArchive scale;
    if (!archive.try_read("scaler", scale)) {
      throw Error(
          fmt::format("'{}' is of a run whose loss was not scaled: train.precision was another one", path.string()));
    }
    parts.scaler.load(scale);
  }
  parts.module.load(model);
  // What it remembers is the saved run's; rates, momentum and decay are those that this run was given.
  std::vector<std::unique_ptr<optim::OptimizerOptions>> given;
  for (const auto& group : parts.optimizer.param_groups()) given.push_back(group.options().clone());
  parts.optimizer.load(state);
  for (std::size_t i = 0; i < given.size(); ++i) parts.optimizer.param_groups()[i].set_options(std::move(given[i]));
  RandomStates generators = random_states();
  for (int i = 0; i < kMaxDeviceTypes; ++i) {
    generators.states[i].seed = std::bit_cast<std::uint64_t>(random.read_integer(fmt::format("seed{}", i)));
    generators.states[i].offset = std::bit_cast<std::uint64_t>(random.read_integer(fmt::format("offset{}", i)));
  }
  set_random_states(generators);
  return position;
}

std::int64_t saved_steps(const std::filesystem::path& path) { return header_of(path).read_integer("steps"); }

std::int64_t saved_batch_size(const std::filesystem::path& path) { return header_of(path).read_integer("batch_size"); }

}  // namespace tenon::train
