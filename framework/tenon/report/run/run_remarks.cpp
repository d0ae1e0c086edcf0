// Sentences about the figures of runs. Declared in run_remarks.h.
#include <tenon/report/run/run_remarks.h>

#include <tenon/core/text/counted.h>
#include <tenon/report/run/attribution_report.h>
#include <tenon/report/run/run_figures.h>
#include <tenon/report/table.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace tenon {

namespace {

/// "the backward pass".
std::string phase_words(const std::string& phase) {
  static const std::map<std::string, std::string> kWords = {{"setup", "the setup before the first step"},
                                                            {"forward", "the forward pass"},
                                                            {"backward", "the backward pass"},
                                                            {"update", "the update of the parameters"},
                                                            {"testing", "testing"}};
  const auto found = kWords.find(phase);
  return found == kWords.end() ? phase : found->second;
}

std::string plural(std::string purpose) {
  static const std::map<std::string, std::string> kWords = {{"activation", "activations"},
                                                            {"gradient", "gradients"},
                                                            {"parameter", "parameters"},
                                                            {"optimizer_state", "optimizer state"}};
  const auto found = kWords.find(purpose);
  return found == kWords.end() ? purpose : found->second;
}

/// "30.2 MiB activations, 10.0 MiB parameters": the largest first, of what was held in the phase of the peak.
std::string holdings(const RunSummary& run) {
  std::vector<std::pair<std::int64_t, std::string>> held;
  for (const auto& [purpose, bytes] : run.bytes_in_peak_phase) {
    if (bytes > 0) held.emplace_back(bytes, plural(purpose));
  }
  std::ranges::sort(held, std::ranges::greater());
  std::string words;
  for (const auto& [bytes, purpose] : held)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", show(Bytes{bytes}), purpose);
  return words;
}

/// Of a run with checkpointing that peaks as high as one without.
std::string why_no_saving(const RunSummary& run) {
  if (run.peak_phase.empty() || run.bytes_in_peak_phase.empty()) return {};
  const std::string place = fmt::format("the peak lies in {}", phase_words(run.peak_phase));
  if (run.peak_phase == "testing") return place + ", which keeps no activations for a backward pass";
  std::int64_t most = 0;
  for (const auto& [purpose, bytes] : run.bytes_in_peak_phase) most = std::max(most, bytes);
  const auto found = run.bytes_in_peak_phase.find("activation");
  const std::int64_t activations = found == run.bytes_in_peak_phase.end() ? 0 : found->second;
  if (2 * activations >= most && run.peak_phase != "update") {
    return fmt::format(
        "{}: there one checkpointed part holds all its activations while it is recomputed ({}); use smaller parts",
        place, show(Bytes{activations}));
  }
  return fmt::format("{}, which held at most {}: checkpointing lowers activations only", place, holdings(run));
}

}  // namespace

std::string ranks_remark(const std::vector<RankMemory>& ranks) {
  if (ranks.empty()) return {};
  const std::size_t worst = worst_rank(ranks);
  std::int64_t least = ranks[worst].peak_reserved_bytes;
  for (const RankMemory& rank : ranks) least = std::min(least, rank.peak_reserved_bytes);
  return fmt::format("{} ranks: rank {} reserved most, {}; the least of a rank is {}\n", ranks.size(), worst,
                     show(Bytes{ranks[worst].peak_reserved_bytes}), show(Bytes{least}));
}

std::string growth_remark(const ExperimentResult& result) {
  const std::optional<double> growth = growth_of_steps(result);
  if (!growth) return {};
  return fmt::format(
      "leak: {} more live at the end of each step than at that of the one before; to see what holds them: --record "
      "snapshot, and tenon doctor on its file\n",
      show(Bytes{std::llround(*growth)}));
}

std::string memory_remarks(const ExperimentResult& result) {
  std::string text = growth_remark(result);
  if (result.attribution) text += attribution_remark(*result.attribution);
  for (const DeviceResult& device : result.devices)
    if (device.attribution) text += attribution_remark(*device.attribution, device.device);
  return text;
}

std::string peak_remark(const std::vector<RunSummary>& runs) {
  std::size_t count = 0;
  const RunSummary* first = nullptr;
  for (const RunSummary& run : runs) {
    if (run.peak_phase != "testing" || !run.peak_allocated_bytes || !run.peak_in_steps_bytes) continue;
    if (first == nullptr) first = &run;
    ++count;
  }
  if (count != 0) {
    return fmt::format(
        "peak: in testing, not in a training step, {} ({} allocated there, {} in training): a smaller "
        "train.test_batch_size lowers it; what changes training alone, as checkpointing does, cannot\n",
        runs.size() == 1 ? std::string("of this run") : fmt::format("in {} of {} cells", count, runs.size()),
        show(Bytes{*first->peak_allocated_bytes}), show(Bytes{*first->peak_in_steps_bytes}));
  }
  if (runs.size() != 1 || runs.front().peak_phase.empty()) return {};
  return fmt::format("peak: in {}, which held at most {}{}\n", phase_words(runs.front().peak_phase),
                     holdings(runs.front()),
                     runs.front().is_checkpointed ? "; checkpointing lowers activations only" : "");
}

std::string checkpoint_remark(const std::vector<std::string>& keys, const std::vector<std::vector<std::string>>& values,
                              const std::vector<RunSummary>& runs) {
  constexpr double kNoSaving = 0.98;
  const auto key = std::ranges::find(keys, "train.checkpoint");
  if (key == keys.end()) return {};
  const auto swept = static_cast<std::size_t>(key - keys.begin());
  std::size_t pairs = 0, without_saving = 0;
  std::string why;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (values[i][swept] != "true" || runs[i].status != RunStatus::kDone) continue;
    std::vector<std::string> plain = values[i];
    plain[swept] = "false";
    const auto found = std::ranges::find(values, plain);
    if (found == values.end()) continue;
    const RunSummary& other = runs[static_cast<std::size_t>(found - values.begin())];
    if (other.status != RunStatus::kDone || !runs[i].peak_allocated_bytes || !other.peak_allocated_bytes) continue;
    ++pairs;
    if (static_cast<double>(*runs[i].peak_allocated_bytes) <
        kNoSaving * static_cast<double>(*other.peak_allocated_bytes))
      continue;
    ++without_saving;
    if (why.empty()) why = why_no_saving(runs[i]);
  }
  if (without_saving == 0 || why.empty()) return {};
  return fmt::format("checkpointing: lowers no peak{}: {}\n",
                     pairs == 1 ? "" : fmt::format(" in {} of {} pairs of cells", without_saving, pairs), why);
}

std::string losses_remark(const std::vector<RunSummary>& runs) {
  std::map<std::string, int> hashes;
  for (const RunSummary& run : runs) {
    if (!run.losses_hash.empty()) ++hashes[run.losses_hash];
  }
  if (runs.size() < 2 || hashes.empty() || (hashes.size() == 1 && hashes.begin()->second == 1)) return {};
  if (hashes.size() == 1) return fmt::format("losses: equal to the last bit in {} cells\n", hashes.begin()->second);
  return fmt::format("losses: {} different courses in {} cells\n", hashes.size(), runs.size());
}

std::string estimate_remark(const std::vector<RunSummary>& runs) {
  std::size_t count = 0;
  EstimateError most;
  const auto raise = [](std::optional<double>& to, const std::optional<double>& error) {
    if (error && (!to || std::abs(*error) > std::abs(*to))) to = error;
  };
  for (const RunSummary& run : runs) {
    if (!run.estimate_error.requested && !run.estimate_error.reserved) continue;
    ++count;
    raise(most.requested, run.estimate_error.requested);
    raise(most.reserved, run.estimate_error.reserved);
  }
  const std::string text = estimate_error_text(most);
  if (text.empty()) return {};
  if (count == 1) return fmt::format("estimate: {}\n", text);
  const bool is_exact = most.requested.value_or(0) == 0 && most.reserved.value_or(0) == 0;
  return is_exact ? fmt::format("estimates: peaks exact in {} cells\n", count)
                  : fmt::format("estimates: of {} cells the farthest off: {}\n", count, text);
}

namespace {

/// "symbols to block3, at most 2 micro-batches, ": what a stage of a pipeline has; empty: it is none.
std::string stage_words(const DeviceResult& device) {
  if (!device.stage || device.stage->layers.empty()) return {};
  const auto& layers = device.stage->layers;
  const std::int64_t most = device.stage->peak_micro_batches;
  return fmt::format("{}{}, at most {}, ", layers.front(), layers.size() > 1 ? " to " + layers.back() : "",
                     counted(most, "micro-batch", "micro-batches"));
}

}  // namespace

std::string devices_remark(const ExperimentResult& result) {
  std::string text;
  if (result.estimated_step_ms)
    text += fmt::format("cost model: a step takes {:.3f} ms on the average\n", *result.estimated_step_ms);
  for (const DeviceResult& device : result.devices) {
    text += fmt::format("{}: {}peak allocated {}, reserved {}", device.device, stage_words(device),
                        show(Bytes{device.peak_allocated_bytes}), show(Bytes{device.peak_reserved_bytes}));
    if (const auto& use = device.estimated) {
      text +=
          fmt::format("; kernels {:.3f} ms, copies {:.3f} ms ({:.0f} % hidden), idle {:.0f} %", use->kernel_ms,
                      use->copy_ms, use->copy_ms > 0 ? 100 * use->hidden_copy_ms / use->copy_ms : 0, 100 * use->idle);
    }
    text += '\n';
  }
  return text;
}

std::string sharing_remark(const std::vector<RunSummary>& runs) {
  std::int64_t most = 1;
  for (const RunSummary& run : runs) most = std::max(most, run.cells_at_a_time);
  if (most == 1) return {};
  return fmt::format("times: up to {} cells ran at a time and slowed one another; -j 1 measures each alone\n", most);
}

std::string noise_remark(const measure::HostState& before) {
  const std::vector<std::string> others = measure::host_noise(before, measure::host_state()).of_others();
  return others.empty() ? "" : fmt::format("step ms: a noisy machine: {}\n", fmt::join(others, "; "));
}

}  // namespace tenon
