// 8 bits by blocks: the kernels' shape rules, and the same of other operators where a device has no kernel.
#include <tenon/ops/quantized/blocks.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/kernel/attributes/quantization.h>
#include <tenon/kernel/dynamic_map.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/pointwise/numeric.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/shape/slicing.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/layout.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::quantized {

using namespace ops;

namespace {

std::int64_t blocks_of(std::int64_t values) { return (values + kBlockValues - 1) / kBlockValues; }

/// So many elements of the tensor's memory from byte `first` of its own on, as a row of that dtype.
Tensor row_of(const Tensor& tensor, Dtype dtype, std::int64_t first, std::int64_t count) {
  const TensorImpl& impl = tensor.impl();
  const auto own = static_cast<std::int64_t>(size_of(impl.dtype())), size = static_cast<std::int64_t>(size_of(dtype));
  auto row = make_intrusive<TensorImpl>(impl.storage_ptr(), dtype);
  row->set_strided({count}, {1}, (impl.offset() * own + first) / size);
  return Tensor(std::move(row));
}

struct Packed {
  Tensor scales, codes;
};
Packed parts_of(const Tensor& packed, std::int64_t values) {
  const std::int64_t scale_bytes = blocks_of(values) * static_cast<std::int64_t>(sizeof(float));
  return {row_of(packed, kFloat32, 0, blocks_of(values)), row_of(packed, kUInt8, scale_bytes, values)};
}

Tensor table(const std::array<float, kMapCodes>& numbers, Device device) {
  Tensor host = tenon::empty({kMapCodes}, TensorOptions(kFloat32).device(kCPU));
  std::ranges::copy(numbers, host.data_ptr<float>());
  return host.to(device, kFloat32);
}

/// Calls run(first, count, values of a block) for parts of at most a 64th of the values, so that what lies between is
/// small, and for the last, shorter block.
template <class F>
void each_part(std::int64_t values, const F& run) {
  constexpr std::int64_t kLeast = 256 * kBlockValues, kParts = 64;
  const std::int64_t part = std::max(kLeast, blocks_of(values / kParts) * kBlockValues);
  const std::int64_t whole = values / kBlockValues * kBlockValues;
  for (std::int64_t first = 0; first < whole; first += part) run(first, std::min(part, whole - first), kBlockValues);
  if (whole < values) run(whole, values - whole, values - whole);
}

void pack_by_operators(const Tensor& row, const Packed& to, bool is_signed) {
  const Tensor thresholds = table(dynamic_thresholds(is_signed), row.device());
  each_part(row.numel(), [&](std::int64_t first, std::int64_t count, std::int64_t width) {
    const Tensor x = row.narrow(0, first, count).view({count / width, width});
    const Tensor not_finite = x.mul(0.0).sum({1}, /*keepdim=*/true);  // 0, or nan
    const Tensor scales = x.abs().amax({1}, /*keepdim=*/true).add(not_finite);
    to.scales.narrow(0, first / kBlockValues, count / width).copy_(scales.flatten());
    const Tensor y = x.div(scales.masked_fill(scales.eq(0), 1)).flatten();
    Tensor code = tenon::zeros({count}, TensorOptions(kInt64).device(row.device()));
    for (std::int64_t bit = kMapCodes / 2; bit > 0; bit /= 2) {
      const Tensor next = code.add(bit);
      code = tenon::where(y.ge(thresholds.index_select(0, next)), next, code);
    }
    to.codes.narrow(0, first, count).copy_(code);
  });
}

void unpack_by_operators(const Packed& from, const Tensor& row, bool is_signed) {
  const Tensor map = table(dynamic_map(is_signed), row.device());
  each_part(row.numel(), [&](std::int64_t first, std::int64_t count, std::int64_t width) {
    const Tensor values = map.index_select(0, from.codes.narrow(0, first, count).to(kInt64));
    const Tensor scales = from.scales.narrow(0, first / kBlockValues, count / width).view({count / width, 1});
    row.narrow(0, first, count).copy_(values.view({count / width, width}).mul(scales).flatten());
  });
}

}  // namespace

std::int64_t packed_bytes(std::int64_t values) {
  return blocks_of(values) * static_cast<std::int64_t>(sizeof(float)) + values;
}

Tensor pack_blocks(const Tensor& values, bool is_signed, const Tensor& into) {
  TENON_SCOPE(pack_blocks, values, is_signed, into)
  const NoGradGuard no_grad;
  check_floating("pack_blocks", values);
  if (!values.impl().is_non_overlapping_and_dense())
    throw Error("pack_blocks: the values have holes in their memory: contiguous() has none");
  const std::int64_t count = values.numel(), bytes = packed_bytes(count);
  if (into.defined() && (into.scalar_type() != kUInt8 || into.numel() != bytes || !into.is_contiguous()))
    throw Error(fmt::format("pack_blocks: {} values take a row of {} bytes of uint8, not {} of {}", count, bytes,
                            into.numel(), name_of(into.scalar_type())));
  Tensor packed = into.defined() ? into : allocate_like(values, {bytes}, kUInt8);
  if (count == 0) return packed;
  const PurposeGuard between(Purpose::kWorkspace);
  const Tensor row = row_of(values, values.scalar_type(), 0, count).to(kFloat32);
  const Packed to = parts_of(packed, count);
  if (find_kernel(row.device().type(), TENON_OP("pack_blocks")) == nullptr) {
    pack_by_operators(row, to, is_signed);
  } else {
    const BlocksAttributes attributes{.is_signed = is_signed};
    run(TENON_OP("pack_blocks"), ops::state_of(row), {view_of(to.codes), view_of(to.scales)}, {view_of(row)},
        &attributes);
  }
  packed.impl().bump_version();
  return packed;
}

Tensor unpack_blocks(const Tensor& packed, const Tensor& like, bool is_signed) {
  TENON_SCOPE(unpack_blocks, packed, like, is_signed)
  const NoGradGuard no_grad;
  const std::int64_t count = like.numel();
  if (packed.scalar_type() != kUInt8 || packed.numel() != packed_bytes(count) || !packed.is_contiguous())
    throw Error(fmt::format("unpack_blocks: {} values are a row of {} bytes of uint8, not {} of {}", count,
                            packed_bytes(count), packed.numel(), name_of(packed.scalar_type())));
  check_floating("unpack_blocks", like);
  const bool dense = like.impl().is_non_overlapping_and_dense();
  Tensor values =
      allocate_strided(ops::state_of(packed), like.impl().sizes(),
                       dense ? like.impl().strides() : contiguous_strides(like.impl().sizes()), like.scalar_type());
  if (count == 0) return values;
  const PurposeGuard between(Purpose::kWorkspace);
  const bool is_aligned = packed.impl().offset() % static_cast<std::int64_t>(sizeof(float)) == 0;
  const Packed from = parts_of(is_aligned ? packed : packed.clone(), count);
  const Tensor row = row_of(values, values.scalar_type(), 0, count);
  const Tensor floats = row.scalar_type() == kFloat32 ? row : allocate_like(row, {count}, kFloat32);
  if (find_kernel(row.device().type(), TENON_OP("unpack_blocks")) == nullptr) {
    unpack_by_operators(from, floats, is_signed);
  } else {
    const BlocksAttributes attributes{.is_signed = is_signed};
    run(TENON_OP("unpack_blocks"), ops::state_of(row), {view_of(floats)}, {view_of(from.codes), view_of(from.scales)},
        &attributes);
  }
  if (!floats.is_same(row)) row.copy_(floats);
  return values;
}

}  // namespace tenon::quantized
