// A list of changes, each estimated like a run.
#include <tenon/train/estimate/saving_changes.h>

#include <tenon/core/seconds_since.h>
#include <tenon/core/units.h>
#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/memory_estimate.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace tenon {

namespace {

struct Candidate {
  std::string option, value;  ///< of [train]
};

std::vector<Candidate> candidates_for(const Options& train) {
  std::vector<Candidate> all;
  if (!train.boolean("checkpoint")) all.push_back({"checkpoint", "true"});
  if (train.text("precision") == "float32") all.push_back({"precision", "bfloat16-mixed"});
  const std::int64_t batch = train.integer("batch_size"), parts = train.integer("micro_batches");
  if (batch > 1) all.push_back({"batch_size", std::to_string(batch / 2)});
  if (2 * parts <= batch) all.push_back({"micro_batches", std::to_string(2 * parts)});
  if (train.integer("test_batch_size") > 1)
    all.push_back({"test_batch_size", std::to_string(train.integer("test_batch_size") / 2)});
  if (train.text("offload") == "none") all.push_back({"offload", "activations"});
  if (train.text("optimizer_states") == "full") all.push_back({"optimizer_states", "8bit"});
  if (!train.boolean("optimizer_in_backward")) all.push_back({"optimizer_in_backward", "true"});
  if (train.text("zero_grad") != "none") all.push_back({"zero_grad", "none"});
  if (!train.boolean("inplace_activations")) all.push_back({"inplace_activations", "true"});
  return all;
}

/// A run that never reserves what a ceiling allows is the same under it; another one is run once more, under it.
bool fits(const ExperimentConfig& config, const MemoryEstimate& estimate) {
  const std::size_t capacity = train::configured_capacity(config);
  const bool has_other_ceilings = !train::under_ceilings(config, capacity).allocator.layers.empty();
  const auto is_within = [&](const DeviceEstimate& device) {
    return capacity == 0 || device.reserved_bytes <= static_cast<std::int64_t>(capacity);
  };
  return (!has_other_ceilings && std::ranges::all_of(estimate.devices, is_within)) || !estimate_shortage(config);
}

std::optional<SavingChange> tried(ExperimentConfig config, const Candidate& candidate) {
  try {
    config.sections.find("train")->second.set_text(candidate.option, candidate.value);
    const MemoryEstimate estimate = estimate_memory(config);
    const bool is_bare =
        candidate.value == "true" || candidate.value.find_first_not_of("0123456789") == std::string::npos;
    const std::string value = is_bare ? candidate.value : '"' + candidate.value + '"';
    return SavingChange{.setting = fmt::format("train.{}={}", candidate.option, value),
                        .peak_requested_bytes = estimate.memory.requested_bytes.peak,
                        .peak_reserved_bytes = estimate.memory.reserved_bytes.peak,
                        .fits = fits(config, estimate)};
  } catch (const std::exception&) {  // this experiment cannot have it
    return std::nullopt;
  }
}

}  // namespace

SavingChanges changes_that_save(const ExperimentConfig& config, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  SavingChanges result;
  const auto serve = config.sections.find("serve");
  if (serve != config.sections.end() && serve->second.integer("requests") > 0) return result;
  try {
    result.peak_requested_bytes = estimate_memory(config).memory.requested_bytes.peak;
  } catch (const std::exception&) {
    return result;
  }
  for (const Candidate& candidate : candidates_for(config.section("train"))) {
    if (seconds_since(start) > seconds) break;
    if (std::optional<SavingChange> change = tried(config, candidate);
        change && change->peak_requested_bytes < result.peak_requested_bytes)
      result.changes.push_back(std::move(*change));
  }
  std::ranges::stable_sort(result.changes, {}, &SavingChange::peak_requested_bytes);
  return result;
}

std::string SavingChanges::text() const {
  constexpr std::size_t kNamed = 3;
  if (changes.empty()) return {};
  const auto size = [](std::int64_t bytes) { return format_bytes(static_cast<std::size_t>(bytes)); };
  std::string text = fmt::format("What would save most (runs on addresses until their memory settles, {} as it is):\n",
                                 size(peak_requested_bytes));
  for (std::size_t i = 0; i < std::min(kNamed, changes.size()); ++i)
    text +=
        fmt::format("  {:<36} {:>10} at the peak, {:>10} less{}\n", changes[i].setting,
                    size(changes[i].peak_requested_bytes), size(peak_requested_bytes - changes[i].peak_requested_bytes),
                    changes[i].fits ? "; fits" : "; does not fit yet");
  return text;
}

}  // namespace tenon
