// Tenon's own allocators beside PyTorch's settings: which are tried, and from which plan.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/advise/would_fit.h>
#include <tenon/replay/trace/trace.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

/// Every allocator that is loaded, with its defaults, but for baselines and those that PyTorch has; then `also`, SPECs
/// that the user named. Throws ConfigError for one that is unknown.
TENON_API std::vector<FitCandidate> own_allocators(const std::vector<std::string>& also);

/// A plan of a history for those allocators that serve from one. It lives in memory, as a file that this process and
/// its forks can read, as long as this does.
class TENON_API PlanOfHistory {
 public:
  /// Looks for a good plan for at most so many seconds. None is made of a history of more than kMostAllocations, or
  /// once `is_stopping` says so.
  PlanOfHistory(const Trace& trace, double seconds, std::function<bool()> is_stopping = {});
  ~PlanOfHistory();
  PlanOfHistory(const PlanOfHistory&) = delete;
  PlanOfHistory& operator=(const PlanOfHistory&) = delete;

  /// Every allocator that is loaded, serves from a plan (packing::kPlanOption) and is not tried without one, with this
  /// one. Empty without a plan.
  std::vector<FitCandidate> allocators() const;

  /// Making a plan and following it takes a few seconds up to here.
  static constexpr std::uint64_t kMostAllocations = 200'000;

 private:
  int descriptor_ = -1;
};

/// How the file of the plan is called where advice names it: "gpt2.trace.gz" gives "gpt2.plan". `device`: its
/// number, where the file has the histories of several: "gpt2-1.plan".
TENON_API std::string plan_name_for(const std::string& history, std::optional<int> device = {});

/// The policy as a user sets it: with the plan's file in place of what was replayed.
TENON_API StackConfig with_plan_file(const StackConfig& policy, const std::string& history,
                                     std::optional<int> device = {});

}  // namespace tenon::replay
