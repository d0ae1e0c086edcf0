// Places in sorted sequences: every value steps through the sequence by halves at the same time, so that a search is
// log2(n) operators on all values, on any backend.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/search.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <bit>

namespace tenon {

using namespace ops;

namespace {

void check_searched(const Tensor& sequence, const Tensor& values, bool right, std::optional<std::string_view> side,
                    const std::optional<Tensor>& sorter) {
  if (side && *side != "left" && *side != "right") {
    throw Error(fmt::format("torch.searchsorted(): side can only be 'left' or 'right' but got {}", *side));
  }
  if (side && *side == "left" && right) {
    throw Error(
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  }
  check_same_device("searchsorted", {&sequence, &values});
  if (sequence.dim() == 0) {
    throw Error("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  }
  if (values.dim() == 0 && sequence.dim() != 1) {
    throw Error(
        fmt::format("torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but "
                    "we got boundaries tensor dim({}) and input value's dim(0) numel(1)",
                    sequence.dim()));
  }
  const bool matching = values.dim() > 0 && values.dim() == sequence.dim() &&
                        values.sizes().slice(0, static_cast<std::size_t>(values.dim() - 1)) ==
                            sequence.sizes().slice(0, static_cast<std::size_t>(sequence.dim() - 1));
  if (sequence.dim() != 1 && !matching) {
    throw Error(
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
        "tensor and input value tensor must match, but we got boundaries tensor " +
        to_string(sequence.sizes()) + " and input value tensor " + to_string(values.sizes()));
  }
  if (sorter && sorter->defined() && sorter->sizes() != sequence.sizes()) {
    throw Error("torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor " +
                to_string(sequence.sizes()) + " and got sorter tensor " + to_string(sorter->sizes()));
  }
  if (sorter && sorter->defined() && sorter->scalar_type() != kInt64) {
    throw Error(std::string("torch.searchsorted(): sorter must be a tensor of long dtype but got dtype ") +
                toString(sorter->scalar_type()));
  }
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  TENON_SCOPE(searchsorted, sorted_sequence, self, out_int32, right, side, sorter)
  NoGradGuard no_grad;
  check_searched(sorted_sequence, self, right, side, sorter);
  const bool behind_equals = right || (side && *side == "right");
  const Dtype dtype = result_type(sorted_sequence, self);
  if (dtype == kBool) throw NotImplementedError("\"searchsorted_out_cpu\" not implemented for 'Bool'");
  const Tensor ascending = sorter && sorter->defined() ? sorted_sequence.gather(-1, *sorter) : sorted_sequence;
  const Tensor sequence = ascending.to(dtype);
  const bool one_for_all = sequence.dim() == 1;
  const Tensor values = (one_for_all ? self.reshape({-1}) : self).to(dtype);
  const std::int64_t length = sequence.size(-1);
  // How many elements stand before the value: `place` grows by a power of two where the last of these stands before it.
  Tensor place = zeros(values.sizes(), values.options().dtype(kInt64));
  if (values.numel() > 0 && length > 0) {
    for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(length))); step > 0;
         step /= 2) {
      const Tensor further = place.add(step);
      const Tensor at = further.sub(1).clamp_max(length - 1);
      const Tensor last = one_for_all ? sequence.index_select(0, at) : sequence.gather(-1, at);
      // NaN stands behind every number, where a sort puts it.
      const Tensor not_before = (behind_equals ? last.gt(values) : last.ge(values)).logical_or(last.ne(last));
      place = where(further.le(length).logical_and(not_before.logical_not()), further, place);
    }
  }
  return place.view(self.sizes()).to(out_int32 ? kInt32 : kInt64);
}
Tensor searchsorted(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                    std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  return searchsorted(sorted_sequence, wrapped_scalar(self, ops::state_of(sorted_sequence)), out_int32, right, side,
                      sorter);
}

Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  TENON_SCOPE(bucketize, self, boundaries, out_int32, right)
  if (boundaries.dim() != 1) {
    throw Error(fmt::format("boundaries tensor must be 1 dimension, but got dim({})", boundaries.dim()));
  }
  return searchsorted(boundaries, self, out_int32, right);
}
Tensor bucketize(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return bucketize(wrapped_scalar(self, ops::state_of(boundaries)), boundaries, out_int32, right);
}

}  // namespace tenon
