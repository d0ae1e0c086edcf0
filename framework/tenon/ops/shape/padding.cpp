// Padding: by a constant, or by positions of the tensor itself.
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/shape/padding.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <algorithm>

namespace tenon {

using namespace ops;

namespace {

/// The size of a padded dimension. Throws Error where more is cut off than there is.
std::int64_t padded_size(std::int64_t size, std::int64_t left, std::int64_t right) {
  if (size + left + right < 0 || size + std::min(left, right) < 0) {
    throw Error("The input size " + std::to_string(size) + ", plus negative padding " + std::to_string(left) + " and " +
                std::to_string(right) + ", resulted in a negative output size, which is invalid.");
  }
  return size + left + right;
}

}  // namespace

Tensor constant_pad_nd(const Tensor& self, IntArrayRef amounts, const Scalar& value) {
  TENON_SCOPE(constant_pad_nd, self, amounts, value)
  const int rank = self.impl().rank();
  const int padded = static_cast<int>(amounts.size() / 2);
  if (amounts.size() % 2 != 0) {
    throw Error("Length of pad must be even but instead it equals " + std::to_string(amounts.size()));
  }
  if (padded > rank) {
    throw Error("Length of pad should be no more than twice the number of dimensions of the input. Pad length is " +
                std::to_string(amounts.size()) + " while the input has " + std::to_string(rank) + " dimensions.");
  }
  Tensor core = self;
  Dims sizes = self.impl().sizes();
  Dims before = Dims::filled(rank, 0);
  for (int i = 0; i < padded; ++i) {
    const int dim = rank - 1 - i;
    const std::int64_t left = amounts[static_cast<std::size_t>(2 * i)];
    const std::int64_t right = amounts[static_cast<std::size_t>(2 * i + 1)];
    sizes[dim] = padded_size(sizes[dim], left, right);
    if (left < 0) core = core.narrow(dim, -left, core.size(dim) + left);
    if (right < 0) core = core.narrow(dim, 0, core.size(dim) + right);
    before[dim] = std::max<std::int64_t>(left, 0);
  }
  const std::vector<std::int64_t> given = amounts.vec();
  Recording recording = record<0>("ConstantPadNdBackward0", {&self}, [given](Backward& b) {
    std::vector<std::int64_t> opposite = given;
    for (std::int64_t& amount : opposite) amount = -amount;
    b.set(0, constant_pad_nd(b.grad(), opposite, 0));
  });
  NoGradGuard no_grad;
  const bool grows = std::any_of(amounts.begin(), amounts.end(), [](std::int64_t amount) { return amount > 0; });
  if (!grows) {  // what is left keeps its layout
    Tensor result = core.clone();
    recording.output(result);
    return result;
  }
  Tensor result = as_fresh(tenon::full(sizes, value, self.options().memory_format(self.suggest_memory_format())));
  Tensor inside = result;
  for (int dim = 0; dim < rank; ++dim) inside = inside.narrow(dim, before[dim], core.size(dim));
  run(TENON_OP("copy"), ops::state_of(self), {view_of(inside)}, {view_of(core)});
  recording.output(result);
  return result;
}

Tensor pad(const Tensor& self, IntArrayRef amounts, std::string_view mode, std::optional<double> value) {
  TENON_SCOPE(pad, self, amounts, mode, value)
  if (mode == "constant") return constant_pad_nd(self, amounts, value.value_or(0));
  if (mode == "replicate") {
    TENON_AUTOCAST_AS(replication_pad, pad(operands...), self, amounts, mode, value)
  } else if (mode == "reflect" && amounts.size() <= 4) {  // of three dimensions PyTorch lets it be
    TENON_AUTOCAST_AS(reflection_pad, pad(operands...), self, amounts, mode, value)
  }
  // The others read positions of the same dimension: an index for each padded one.
  Tensor result = self;
  for (std::size_t i = 0; 2 * i + 1 < amounts.size(); ++i) {
    const std::int64_t dim = self.dim() - 1 - static_cast<std::int64_t>(i);
    const std::int64_t length = self.size(dim);
    const std::int64_t left = amounts[2 * i];
    const std::int64_t right = amounts[2 * i + 1];
    if (left == 0 && right == 0) continue;
    padded_size(length, left, right);
    if (length == 0) {
      throw Error("pad: mode " + std::string(mode) + " has nothing to show in dimension " + std::to_string(dim) +
                  " of input " + to_string(self.sizes()) + ", which is empty");
    }
    if (length + left + right < 1 && mode != "circular") {
      throw Error("pad: of input " + to_string(self.sizes()) + " nothing is left in dimension " + std::to_string(dim));
    }
    Tensor index = arange(-left, length + right, TensorOptions(kInt64).device(self.device()));
    if (mode == "replicate") {
      index = index.clamp(0, length - 1);
    } else if (mode == "circular") {
      if (left > length || right > length) throw Error("Padding value causes wrapping around more than once.");
      // Of what is cut off nothing comes back at the other end.
      const std::int64_t first = std::max<std::int64_t>(-left, 0);
      const std::int64_t kept = length - first - std::max<std::int64_t>(-right, 0);
      if (kept > 0) index = index.sub(first).remainder(kept).add(first);
    } else if (mode == "reflect") {
      if (left >= length || right >= length) {
        throw Error("Padding size should be less than the corresponding input dimension, but got: padding (" +
                    std::to_string(left) + ", " + std::to_string(right) + ") at dimension " + std::to_string(dim) +
                    " of input " + to_string(self.sizes()));
      }
      index = index.abs();
      index = index.mul(-1).add(length - 1).abs().mul(-1).add(length - 1);
    } else {
      throw NotImplementedError("Unrecognised padding mode " + std::string(mode));
    }
    result = result.index_select(dim, index);
  }
  const bool keeps_format = self.dim() == 4 && amounts.size() >= 4 && mode != "circular";
  const MemoryFormat format = keeps_format ? self.suggest_memory_format() : MemoryFormat::Contiguous;
  return result.is_same(self) ? self.clone(format) : result.contiguous(format);
}

}  // namespace tenon
