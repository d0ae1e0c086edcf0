// How the terms of a loss become the result.
#include <tenon/core/error.h>
#include <tenon/ops/support/loss_reduction.h>

#include <fmt/format.h>

namespace tenon::ops {

LossReduction loss_reduction(const char* op, std::int64_t reduction) {
  if (reduction < 0 || reduction > 2) {
    throw Error(fmt::format("{}: unknown reduction {}: expected 0 (none), 1 (mean) or 2 (sum)", op, reduction));
  }
  return static_cast<LossReduction>(reduction);
}

Tensor reduced(const char* op, const Tensor& terms, std::int64_t reduction) {
  switch (loss_reduction(op, reduction)) {
    case LossReduction::kMean:
      return terms.mean();
    case LossReduction::kSum:
      return terms.sum();
    default:
      return terms;
  }
}

}  // namespace tenon::ops
