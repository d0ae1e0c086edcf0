// Figures as tensors of an archive.
#include <tenon/train/resume/saved_figures.h>

#include <tenon/core/error.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/tensor/literal.h>
#include <tenon/train/peaks.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace tenon::train {
namespace {

/// The fields of the result that are counts or seconds of a part, by name.
template <class Result, class Visit>
void each_sum(Result& result, Visit visit) {
  visit("steps", result.steps);
  visit("warmup_steps", result.warmup_steps);
  visit("device_calls_after_warmup", result.device_calls_after_warmup);
  visit("oom_recoveries", result.oom_recoveries);
  visit("allocations", result.memory.allocations.allocated);
  for_each_device_count(visit, result.memory);
  visit("device_growths", result.memory.device_growths);
  visit("device_shrinks", result.memory.device_shrinks);
  visit("ooms", result.memory.ooms);
}

template <class T>
void write_series(OutputArchive& archive, const char* name, const std::vector<T>& values) {
  if (!values.empty())
    archive.write(name, tenon::tensor(values, TensorOptions(std::is_same_v<T, double> ? kFloat64 : kInt64)));
}

template <class T>
std::vector<T> read_series(InputArchive& archive, const char* name) {
  Tensor tensor;
  if (!archive.try_read(name, tensor)) return {};
  tensor = tensor.to(kCPU).contiguous();
  const T* const first = tensor.data_ptr<T>();
  return {first, first + tensor.numel()};
}

void append(auto& earlier, auto& later) { later.insert(later.begin(), earlier.begin(), earlier.end()); }

}  // namespace

void write_figures(OutputArchive& archive, const ExperimentResult& result) {
  each_sum(result, [&](const char* name, std::int64_t value) { archive.write(name, value); });
  archive.write("seconds", result.seconds);
  write_series(archive, "losses", result.losses);
  write_series(archive, "step_ms", result.step_ms);
  std::vector<double> epochs;
  for (const EpochResult& epoch : result.epochs) {
    epochs.insert(epochs.end(), {static_cast<double>(epoch.epoch), epoch.train_loss, epoch.test_loss,
                                 epoch.test_accuracy, epoch.seconds});
  }
  write_series(archive, "epochs", epochs);
  std::vector<std::int64_t> timeline;
  for (const MemorySample& sample : result.timeline) {
    timeline.insert(timeline.end(), {sample.step, sample.requested_bytes, sample.allocated_bytes, sample.reserved_bytes,
                                     sample.peak_allocated_bytes});
  }
  write_series(archive, "timeline", timeline);
  write_series(archive, "peaks", peaks_of(result.memory));
  std::vector<std::int64_t> place = {static_cast<std::int64_t>(result.peak.phase), result.peak.allocated_bytes};
  place.insert(place.end(), result.peak.requested_by_purpose.begin(), result.peak.requested_by_purpose.end());
  write_series(archive, "peak_place", place);
}

ExperimentResult read_figures(InputArchive& archive) {
  ExperimentResult result;
  each_sum(result, [&](const char* name, std::int64_t& value) { value = archive.read_integer(name); });
  result.seconds = archive.read_real("seconds");
  result.losses = read_series<double>(archive, "losses");
  result.step_ms = read_series<double>(archive, "step_ms");
  const auto epochs = read_series<double>(archive, "epochs");
  for (std::size_t i = 0; i + 5 <= epochs.size(); i += 5) {
    result.epochs.push_back({.epoch = static_cast<int>(epochs[i]),
                             .train_loss = epochs[i + 1],
                             .test_loss = epochs[i + 2],
                             .test_accuracy = epochs[i + 3],
                             .seconds = epochs[i + 4]});
  }
  const auto timeline = read_series<std::int64_t>(archive, "timeline");
  for (std::size_t i = 0; i + 5 <= timeline.size(); i += 5) {
    result.timeline.push_back({.step = timeline[i],
                               .requested_bytes = timeline[i + 1],
                               .allocated_bytes = timeline[i + 2],
                               .reserved_bytes = timeline[i + 3],
                               .peak_allocated_bytes = timeline[i + 4]});
  }
  raise_peaks(result.memory, read_series<std::int64_t>(archive, "peaks"));
  const auto place = read_series<std::int64_t>(archive, "peak_place");
  if (place.size() == 2 + result.peak.requested_by_purpose.size() && place[0] >= 0 &&
      place[0] < static_cast<std::int64_t>(kRunPhases.size())) {
    result.peak.phase = static_cast<RunPhase>(place[0]);
    result.peak.allocated_bytes = place[1];
    std::copy(place.begin() + 2, place.end(), result.peak.requested_by_purpose.begin());
  }
  return result;
}

ExperimentResult joined(const ExperimentResult& earlier, ExperimentResult later) {
  std::vector<std::int64_t> sums;
  each_sum(earlier, [&](const char*, std::int64_t value) { sums.push_back(value); });
  std::size_t next = 0;
  each_sum(later, [&](const char*, std::int64_t& value) { value += sums[next++]; });
  later.seconds += earlier.seconds;
  later.earlier_seconds = earlier.seconds;
  append(earlier.losses, later.losses);
  append(earlier.step_ms, later.step_ms);
  append(earlier.epochs, later.epochs);
  append(earlier.timeline, later.timeline);
  raise_peaks(later.memory, peaks_of(earlier.memory));
  if (earlier.peak.allocated_bytes > later.peak.allocated_bytes) later.peak = earlier.peak;
  if (!later.epochs.empty()) later.test_accuracy = later.epochs.back().test_accuracy;
  return later;
}

}  // namespace tenon::train
