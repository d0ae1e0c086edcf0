// Results that a checkpointed part keeps of its first run, so that the second one does not compute them: selective
// checkpointing, as torch.utils.checkpoint.create_selective_checkpoint_contexts.
#pragma once

#include <tenon/autograd/checkpoint.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tenon::autograd {

/// Those of one part, in the order in which its operators run.
class KeptResults {
 public:
  explicit KeptResults(CheckpointPolicy policy) : policy_(std::move(policy)) {}

  /// Before a run of the part: the first one asks the policy, a later one does what that did.
  void begin(bool again);
  /// The operator's results of the first run, where it kept them; false: they are to be computed. They are given once:
  /// a third run computes. Throws Error where one was written to since, and where the part does something else.
  bool take(const char* op, std::initializer_list<Tensor*> results);
  /// Keeps what was computed, where the policy says so.
  void keep(const char* op, std::initializer_list<Tensor*> results);

 private:
  struct Entry {
    const char* op;
    std::vector<Tensor> results;          ///< empty: not kept, or given
    std::vector<std::uint32_t> versions;  ///< that they had
  };

  CheckpointPolicy policy_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
  bool again_ = false;
};

/// Of the part that runs on this thread; null: none, or one that keeps nothing.
inline constinit thread_local KeptResults* kept_results __attribute__((visibility("hidden"))) = nullptr;

/// The part that runs while it lives.
class KeptResultsGuard {
 public:
  explicit KeptResultsGuard(KeptResults* part) : before_(std::exchange(kept_results, part)) {}
  ~KeptResultsGuard() { kept_results = before_; }
  KeptResultsGuard(const KeptResultsGuard&) = delete;
  KeptResultsGuard& operator=(const KeptResultsGuard&) = delete;

 private:
  KeptResults* before_;
};

/// compute() sets the results of an operator that is worth keeping, unless a first run has kept them.
template <class Compute>
void computed_once(const char* op, std::initializer_list<Tensor*> results, Compute compute) {
  if (kept_results == nullptr) [[likely]]
    return compute();
  if (kept_results->take(op, results)) return;
  compute();
  kept_results->keep(op, results);
}

}  // namespace tenon::autograd
