// FaultLog: what the layers `track` and `guard` found wrong. deallocate cannot throw, so faults are kept for whoever
// can.
#pragma once

#include <tenon/core/options.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// Thread-safe. The first faults are printed to stderr as they come and kept word by word, the rest counted.
class FaultLog {
 public:
  static OptionSpec option();  ///< on_error: "report" | "throw"
  FaultLog(std::string layer, const Options& options);

  void add(std::string message) noexcept;
  std::uint64_t count() const;
  std::vector<std::string> messages() const;

  /// Throws Error with the first fault that was not thrown yet, if on_error is "throw".
  void throw_pending();
  /// Throws Error with the first fault, if there is any.
  void throw_first() const;
  void summarize(std::vector<std::pair<std::string, std::string>>& entries) const;

 private:
  const std::string layer_;
  const bool throws_;
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
  std::uint64_t count_ = 0;
  std::uint64_t thrown_ = 0;
};

}  // namespace tenon
