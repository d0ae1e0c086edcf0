// Reducer: the gradients of all ranks become one while backward is still computing. c10d's reducer.
//
//   backward  ──▶ gradient of the last layer ──▶ … ──▶ gradient of the first layer
//                 └─ bucket 0 is full: all-reduce ─┐    └─ bucket n is full: all-reduce, then wait for all of them
//                                                  └─ runs beside backward
//
// Note [Buckets]: gradients come about in the opposite order of the parameters, so buckets are filled in that order.
// Each holds gradients of one dtype and device up to a size; the first is smaller, so that communication begins early.
// Every rank has the same parameters, hence the same buckets, and sends them in the same order whichever is full first.
// Source: Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", 2020.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::distributed {

struct ReducerOptions {
  std::size_t bucket_bytes = std::size_t{25} << 20;
  std::size_t first_bucket_bytes = std::size_t{1} << 20;
  bool find_unused_parameters = false;   ///< looks at each graph for parameters that it does not reach
  bool gradient_as_bucket_view = false;  ///< gradients are kept in the buckets: a copy of them all is saved
  bool average = true;                   ///< what ranks have is added up and divided by their number, or only added up
  bool overlap = true;                   ///< else buckets are sent when the last gradient is there
};

/// Which parameters go into which bucket, by their positions. See Note [Buckets].
TENON_API std::vector<std::vector<std::size_t>> bucket_assignment(const std::vector<Tensor>& parameters,
                                                                  std::size_t first_bucket_bytes,
                                                                  std::size_t bucket_bytes);

/// What the reductions took.
struct ReducerStats {
  std::int64_t reductions = 0;  ///< backward passes whose gradients were reduced
  std::int64_t bytes = 0;       ///< of this rank's gradients that were sent
  double busy_seconds = 0;      ///< that buckets were on their way
  double waited_seconds = 0;    ///< that backward waited for them at its end
  /// The share of communication that computing hid; 0 before the first.
  double hidden_share() const { return busy_seconds > 0 ? 1 - std::min(waited_seconds / busy_seconds, 1.0) : 0; }
};

/// Of the parameters that require a gradient, each with its name for messages.
class TENON_EXPORT Reducer {
 public:
  /// Throws Error for no parameter at all. Parameters that move to other memory afterwards (Module::to) are not
  /// reduced.
  TENON_API Reducer(std::vector<std::pair<std::string, Tensor>> parameters, std::shared_ptr<Communicator> ranks,
                    const ReducerOptions& options = {});
  TENON_API ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// The next backward pass, from `outputs`, ends with reduced gradients. Without this call gradients only add up on
  /// this rank. Throws Error where the pass before left parameters without a gradient, naming them.
  TENON_API void prepare_for_backward(const std::vector<Tensor>& outputs = {});
  /// After a backward pass that was prepared. Throws Error where it left parameters without a gradient, naming them:
  /// what the others got is then of this rank alone.
  TENON_API void check_finished() const;
  /// Gives up a pass that failed in the middle: gradients of the other ranks are not waited for. Only where no rank
  /// goes on with it.
  TENON_API void abandon() noexcept;

  /// Since the beginning.
  TENON_API const ReducerStats& stats() const;
  /// Of each the positions of its parameters among those that require a gradient, as bucket_assignment() gives them.
  TENON_API const std::vector<std::vector<std::size_t>>& buckets() const;

 private:
  class Impl;
  Owned<Impl> impl_;
};

}  // namespace tenon::distributed
