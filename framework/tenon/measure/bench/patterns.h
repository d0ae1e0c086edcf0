// The workloads that are made up: a row for each form of their names.
#pragma once

#include <tenon/measure/bench/workload.h>

#include <cstdint>
#include <memory>
#include <span>

namespace tenon::measure {

/// A form of names: "lifo/N", where N is at most `most`.
struct PatternForm {
  const char* name;
  const char* argument;  ///< "SIZE" or "N"
  const char* help;
  std::uint64_t most;
  std::unique_ptr<Workload> (*make)(const StackConfig& allocator, std::uint64_t number);
};
std::span<const PatternForm> pattern_forms();

}  // namespace tenon::measure
