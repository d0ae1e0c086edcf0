// Padding: constants are concatenated, the other modes select indices along each dimension.
#include <tenon/nn/functional/pad.h>

#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

namespace tenon::nn::functional {
namespace {

Tensor pad_constant(Tensor x, std::int64_t dim, std::int64_t before, std::int64_t after, double value) {
  if (before < 0 || after < 0) {
    const std::int64_t start = before < 0 ? -before : 0;
    const std::int64_t end = x.size(dim) - (after < 0 ? -after : 0);
    if (end < start) throw Error("pad: the resulting output size is negative");
    x = x.narrow(dim, start, end - start);
  }
  std::vector<Tensor> pieces;
  const auto add = [&](std::int64_t count) {
    if (count <= 0) return;
    std::vector<std::int64_t> sizes = x.sizes().vec();
    sizes[static_cast<std::size_t>(dim)] = count;
    pieces.push_back(tenon::full(sizes, value, x.options()));
  };
  add(before);
  pieces.push_back(x);
  add(after);
  return pieces.size() == 1 ? x : tenon::cat(pieces, dim);
}

/// Which input position each output position shows.
std::int64_t source_of(std::int64_t position, std::int64_t size, const PadMode& mode) {
  if (std::holds_alternative<enumtype::kReflect>(mode)) {
    if (position < 0) return -position;
    return position >= size ? 2 * (size - 1) - position : position;
  }
  if (std::holds_alternative<enumtype::kCircular>(mode)) return ((position % size) + size) % size;
  return std::clamp<std::int64_t>(position, 0, size - 1);
}

Tensor pad_by_index(const Tensor& x, std::int64_t dim, std::int64_t before, std::int64_t after, const PadMode& mode) {
  const std::int64_t size = x.size(dim);
  if (std::holds_alternative<enumtype::kReflect>(mode) && (before >= size || after >= size)) {
    throw Error(
        fmt::format("Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) "
                    "at dimension {} of size {}",
                    before, after, dim, size));
  }
  if (std::holds_alternative<enumtype::kCircular>(mode) && (before > size || after > size)) {
    throw Error("Padding value causes wrapping around more than once.");
  }
  std::vector<std::int64_t> sources;
  for (std::int64_t i = -before; i < size + after; ++i) sources.push_back(source_of(i, size, mode));
  const Tensor index = tenon::tensor(sources, TensorOptions(kInt64)).to(x.device());
  return x.index_select(dim, index);
}

}  // namespace

Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  const auto& pads = options.pad();
  if (pads.size() % 2 != 0) throw Error("Padding length must be divisible by 2");
  if (static_cast<std::int64_t>(pads.size()) / 2 > input.dim()) throw Error("Padding length too large");
  const bool constant = std::holds_alternative<enumtype::kConstant>(options.mode());
  if (!constant && options.value() != 0) {
    throw Error(
        fmt::format("Padding mode \"{}\" doesn't take in value argument", enumtype::get_enum_name(options.mode())));
  }
  Tensor x = input;
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const std::int64_t before = pads[2 * i], after = pads[2 * i + 1];
    if (before == 0 && after == 0) continue;
    const std::int64_t dim = input.dim() - 1 - static_cast<std::int64_t>(i);
    x = constant ? pad_constant(x, dim, before, after, options.value())
                 : pad_by_index(x, dim, before, after, options.mode());
  }
  return x.is_same(input) ? input.clone() : x;
}

}  // namespace tenon::nn::functional
