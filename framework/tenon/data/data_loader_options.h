// Options of a DataLoader.
#pragma once

#include <tenon/core/durations.h>
#include <tenon/nn/options/arg.h>

#include <cstddef>
#include <optional>
#include <string>

namespace tenon::data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(std::size_t batch_size) : batch_size_(batch_size) {}  // NOLINT: as in libtorch
  TENON_ARG(std::size_t, batch_size) = 1;                                 ///< how many examples make a batch
  TENON_ARG(std::size_t, workers) = 0;                                    ///< threads; 0: the caller's
  TENON_ARG(std::optional<std::size_t>, max_jobs);                        ///< batches made ahead; 2 per worker
  TENON_ARG(std::optional<std::chrono::milliseconds>, timeout);           ///< for one batch
  TENON_ARG(bool, enforce_ordering) = true;                               ///< batches in the sampler's order
  TENON_ARG(bool, drop_last) = false;                                     ///< leave out a last batch that is smaller
  /// Batches in page-locked host memory, from which to(device, non_blocking = true) returns at once (torch.utils.data's
  /// option of this name), and whose: by default pinned_memory_device()'s.
  TENON_ARG(bool, pin_memory) = false;
  TENON_ARG(std::string, pin_memory_device);  ///< the device that batches are pinned for; empty for the usual one
};

/// With the absent ones filled in.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(const DataLoaderOptions& options)
      : batch_size(options.batch_size()),
        workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)),
        timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()),
        drop_last(options.drop_last()),
        pin_memory(options.pin_memory()),
        pin_memory_device(options.pin_memory_device()) {}
  std::size_t batch_size;
  std::size_t workers;
  std::size_t max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering;
  bool drop_last;
  bool pin_memory;
  std::string pin_memory_device;
};

}  // namespace tenon::data
