// Tensors of any layout, numbers for them, comparisons.
#include "harness.h"

#include "target.h"

#include <tenon/core/half.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tenon::conformance {

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::kContiguous:
      return "contiguous";
    case Layout::kTransposed:
      return "transposed";
    case Layout::kStrided:
      return "strided";
    default:
      return "channels last";
  }
}

Tensor::Tensor(Dtype dtype, Sizes sizes, Layout layout) : sizes_(std::move(sizes)), strides_(sizes_.size()) {
  const int rank = static_cast<int>(sizes_.size());
  std::vector<int> order(sizes_.size());  // innermost first
  for (int d = 0; d < rank; ++d) order[static_cast<std::size_t>(d)] = rank - 1 - d;
  if (layout == Layout::kTransposed) std::reverse(order.begin(), order.end());
  if (layout == Layout::kChannelsLast && rank > 2) {
    order.erase(std::find(order.begin(), order.end(), 1));
    order.insert(order.begin(), 1);
  }
  i64 expected = layout == Layout::kStrided ? 2 : 1;
  for (const int d : order) {
    const auto at = static_cast<std::size_t>(d);
    strides_[at] = expected;
    expected *= std::max<i64>(1, sizes_[at]);
    if (layout == Layout::kStrided) expected += 3;
  }
  constexpr std::size_t kAlignment = 64, kGuard = 64;
  bytes_ = static_cast<std::size_t>(expected) * size_of(dtype);
  memory_ = std::make_shared<std::vector<char>>(bytes_ + kAlignment + 2 * kGuard, static_cast<char>(0xA5));
  const auto address = reinterpret_cast<std::uintptr_t>(memory_->data()) + kGuard;
  offset_bytes_ = kGuard + (kAlignment - address % kAlignment) % kAlignment;
  view_.rank = rank;
  view_.dtype = dtype;
}

Tensor Tensor::expanded(const Sizes& sizes) const {
  Tensor result = *this;
  const std::size_t lead = sizes.size() - sizes_.size();
  result.sizes_ = sizes;
  result.strides_.assign(sizes.size(), 0);
  for (std::size_t d = 0; d < sizes_.size(); ++d) {
    if (sizes_[d] == sizes[d + lead]) result.strides_[d + lead] = strides_[d];
  }
  result.view_.rank = static_cast<std::int32_t>(sizes.size());
  return result;
}

Tensor Tensor::narrowed(int dim, i64 from, i64 count) const {
  Tensor result = *this;
  const auto at = static_cast<std::size_t>(dim);
  result.sizes_[at] = count;
  result.first_bytes_ += static_cast<std::size_t>(from * strides_[at]) * size_of(dtype());
  return result;
}

Tensor Tensor::transposed(int a, int b) const {
  Tensor result = *this;
  std::swap(result.sizes_[static_cast<std::size_t>(a)], result.sizes_[static_cast<std::size_t>(b)]);
  std::swap(result.strides_[static_cast<std::size_t>(a)], result.strides_[static_cast<std::size_t>(b)]);
  return result;
}

Tensor Tensor::restrided(const Sizes& sizes, const Sizes& strides) const {
  Tensor result = *this;
  result.sizes_ = sizes;
  result.strides_ = strides;
  result.view_.rank = static_cast<std::int32_t>(sizes.size());
  return result;
}

std::span<char> Tensor::memory() const {
  if (!defined()) return {};
  return {memory_->data() + offset_bytes_, bytes_};
}

TensorView Tensor::view() const {
  TensorView view = view_;
  if (view.rank < 0) return view;
  view.data = memory().data() + first_bytes_;
  view.sizes = sizes_.data();
  view.strides = strides_.data();
  return view;
}

void Tensor::copy_elements(const std::vector<char>& from, std::vector<char>& to) const {
  const std::size_t element = size_of(dtype());
  // Rows of the last dimension, or all of it where that is what lies there.
  i64 dense = 1;
  bool is_dense = true;
  for (std::size_t d = sizes_.size(); d-- > 0;) {
    is_dense &= sizes_[d] == 1 || strides_[d] == dense;
    dense *= sizes_[d];
  }
  const std::size_t first = offset_bytes_ + first_bytes_;
  if (is_dense) {
    std::copy_n(from.data() + first, static_cast<std::size_t>(count()) * element, to.data() + first);
    return;
  }
  for (i64 i = 0; i < count(); ++i) {
    const auto at = static_cast<std::size_t>(this->element(i) - memory_->data());
    std::copy_n(from.data() + at, element, to.data() + at);
  }
}

i64 Tensor::count() const {
  i64 count = 1;
  for (const i64 size : sizes_) count *= size;
  return count;
}

i64 Tensor::offset(std::span<const i64> where) const {
  i64 offset = 0;
  for (std::size_t d = 0; d < sizes_.size(); ++d) offset += where[d] * strides_[d];
  return offset;
}

char* Tensor::element(i64 index) const {
  i64 offset = 0;
  for (std::size_t d = sizes_.size(); d-- > 0;) {
    offset += index % sizes_[d] * strides_[d];
    index /= sizes_[d];
  }
  return memory().data() + first_bytes_ + offset * static_cast<i64>(size_of(view_.dtype));
}

double Tensor::real(i64 index) const {
  const char* at = element(index);
  switch (view_.dtype) {
    case Dtype::kFloat16:
      return *reinterpret_cast<const Half*>(at);
    case Dtype::kBFloat16:
      return *reinterpret_cast<const BFloat16*>(at);
    case Dtype::kFloat32:
      return *reinterpret_cast<const float*>(at);
    case Dtype::kFloat64:
      return *reinterpret_cast<const double*>(at);
    default:
      return static_cast<double>(integer(index));
  }
}

i64 Tensor::integer(i64 index) const {
  const char* at = element(index);
  switch (view_.dtype) {
    case Dtype::kBool:
      return *at != 0;
    case Dtype::kUInt8:
      return *reinterpret_cast<const std::uint8_t*>(at);
    case Dtype::kInt8:
      return *reinterpret_cast<const std::int8_t*>(at);
    case Dtype::kInt16:
      return *reinterpret_cast<const std::int16_t*>(at);
    case Dtype::kInt32:
      return *reinterpret_cast<const std::int32_t*>(at);
    case Dtype::kInt64:
      return *reinterpret_cast<const i64*>(at);
    default:
      return static_cast<i64>(real(index));
  }
}

void Tensor::set(i64 index, double value) {
  char* at = element(index);
  switch (view_.dtype) {
    case Dtype::kFloat16:
      *reinterpret_cast<Half*>(at) = Half(static_cast<float>(value));
      break;
    case Dtype::kBFloat16:
      *reinterpret_cast<BFloat16*>(at) = BFloat16(static_cast<float>(value));
      break;
    case Dtype::kFloat32:
      *reinterpret_cast<float*>(at) = static_cast<float>(value);
      break;
    case Dtype::kFloat64:
      *reinterpret_cast<double*>(at) = value;
      break;
    default:
      set_integer(index, static_cast<i64>(value));
  }
}

void Tensor::set_integer(i64 index, i64 value) {
  char* at = element(index);
  switch (view_.dtype) {
    case Dtype::kBool:
      *at = value != 0;
      break;
    case Dtype::kUInt8:
      *reinterpret_cast<std::uint8_t*>(at) = static_cast<std::uint8_t>(value);
      break;
    case Dtype::kInt8:
      *reinterpret_cast<std::int8_t*>(at) = static_cast<std::int8_t>(value);
      break;
    case Dtype::kInt16:
      *reinterpret_cast<std::int16_t*>(at) = static_cast<std::int16_t>(value);
      break;
    case Dtype::kInt32:
      *reinterpret_cast<std::int32_t*>(at) = static_cast<std::int32_t>(value);
      break;
    case Dtype::kInt64:
      *reinterpret_cast<i64*>(at) = value;
      break;
    default:
      set(index, static_cast<double>(value));
  }
}

Tensor& Tensor::fill(const test::FunctionRef<double(i64)>& value) {
  for (i64 i = 0; i < count(); ++i) set(i, value(i));
  return *this;
}

std::uint64_t Random::bits() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return state_ * 0x2545F4914F6CDD1Dull;
}
double Random::between(double low, double high) {
  return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
}
i64 Random::integer(i64 low, i64 high) {
  return low + static_cast<i64>(bits() % static_cast<std::uint64_t>(high - low));
}

double exact_value(Dtype dtype, Random& random, double low, double high) {
  const double value = random.between(low, high);
  switch (dtype) {
    case Dtype::kFloat16:
      return Half(static_cast<float>(value));
    case Dtype::kBFloat16:
      return BFloat16(static_cast<float>(value));
    case Dtype::kFloat32:
      return static_cast<float>(value);
    case Dtype::kFloat64:
      return value;
    case Dtype::kBool:
      return random.bits() % 2 ? 1 : 0;
    case Dtype::kUInt8:
      return std::fabs(std::floor(value));
    default:
      return std::floor(value);
  }
}

Tensor random_indices(const Sizes& sizes, i64 low, i64 high, Random& random) {
  Tensor t(Dtype::kInt64, sizes);
  return t.fill([&](i64) { return static_cast<double>(random.integer(low, high)); });
}

Tensor random_tensor(Dtype dtype, const Sizes& sizes, Layout layout, Random& random, double low, double high) {
  Tensor tensor(dtype, sizes, layout);
  return tensor.fill([&](i64) { return exact_value(dtype, random, low, high); });
}

double epsilon_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return 0x1p-11;
    case Dtype::kBFloat16:
      return 0x1p-8;
    case Dtype::kFloat32:
      return 0x1p-24;
    default:
      return 0x1p-53;
  }
}

void expect_near(const Tensor& got, const test::FunctionRef<double(i64)>& expected, double tolerance,
                 std::string_view what, double absolute) {
  for (i64 i = 0; i < got.count(); ++i) {
    const double value = got.real(i), want = expected(i);
    if (std::isnan(want) && std::isnan(value)) continue;
    if (value == want) continue;
    const double smallest = got.dtype() == Dtype::kFloat16   ? 0x1p-24
                            : got.dtype() == Dtype::kFloat64 ? 0x1p-1022
                                                             : 0x1p-126;
    const double bound = tolerance * std::fabs(want) + absolute + smallest;
    const double largest = got.dtype() == Dtype::kFloat16 ? 65504 : 3.3e38;
    if (std::isinf(value) && std::fabs(want) > largest * 0.999) continue;
    ASSERT_FALSE(std::isinf(want)) << what << ", element " << i << ": got " << value << ", expected " << want;
    ASSERT_LE(std::fabs(value - want), bound) << what << ": " << name_of(got.dtype()) << " " << to_string(got.sizes())
                                              << ", element " << i << ": got " << value << ", expected " << want;
    ASSERT_FALSE(std::isnan(value)) << what << ", element " << i << ", expected " << want;
  }
}

void expect_equal(const Tensor& got, const test::FunctionRef<i64(i64)>& expected, std::string_view what) {
  for (i64 i = 0; i < got.count(); ++i) {
    ASSERT_EQ(got.integer(i), expected(i))
        << what << ": " << name_of(got.dtype()) << " " << to_string(got.sizes()) << ", element " << i;
  }
}

const std::vector<Sizes>& shapes() {
  static const std::vector<Sizes> most = {{},     {0},      {1},       {7},           {67},      {3, 0, 5},
                                          {2, 3}, {31, 37}, {5, 1, 7}, {3, 4, 5, 13}, {17, 130}, {1, 1031}};
  static const std::vector<Sizes> all = [] {
    std::vector<Sizes> with_the_largest = most;
    with_the_largest.push_back({211, 193});
    return with_the_largest;
  }();
  return target().slow ? most : all;
}

std::string to_string(const Sizes& sizes) {
  std::string text = "(";
  for (std::size_t d = 0; d < sizes.size(); ++d) text += (d ? ", " : "") + std::to_string(sizes[d]);
  return text + ")";
}

Sizes coordinates(i64 index, const Sizes& sizes) {
  Sizes where(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    where[d] = index % sizes[d];
    index /= sizes[d];
  }
  return where;
}

}  // namespace tenon::conformance
