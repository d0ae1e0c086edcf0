// Runs the kernels of a backend plugin against plain references: loads the plugin, makes tensors of any layout,
// compares.
//
// The plugin is the file named by TENON_CONFORMANCE_PLUGIN, else the one of the program's target.h. A backend with an
// option `isa` is run at each of its levels that the machine has. A plugin that is named so need not have every kernel.
#pragma once

#include "support/function_ref.h"

#include <tenon/core/dtype.h>
#include <tenon/device/device_driver.h>
#include <tenon/kernel/kernel.h>
#include <tenon/kernel/tensor_view.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::conformance {

using i64 = std::int64_t;
using Sizes = std::vector<i64>;

/// How a tensor lies in its memory.
enum class Layout { kContiguous, kTransposed, kStrided, kChannelsLast };
std::string_view name_of(Layout layout);

/// A tensor in host memory (a kernel on another device gets a copy), values read and written as double or int64.
/// Freshly made memory is filled with 0xA5 bytes, so that a kernel that forgets an element is seen.
class Tensor {
 public:
  Tensor() { view_.rank = -1; }  ///< undefined
  Tensor(Dtype dtype, Sizes sizes, Layout layout = Layout::kContiguous);

  /// A broadcast view: stride 0 in the dimensions where `sizes` is larger than this tensor's 1.
  Tensor expanded(const Sizes& sizes) const;

  /// Views of the same memory: `count` places of a dimension from `from` on, and two dimensions that change places.
  Tensor narrowed(int dim, i64 from, i64 count) const;
  Tensor transposed(int a, int b) const;
  /// The same memory from its first element on with other sizes and strides, which stay within it.
  Tensor restrided(const Sizes& sizes, const Sizes& strides) const;

  TensorView view() const;
  /// All bytes that this tensor and its views share.
  std::span<char> memory() const;
  /// The same with what lies before and behind, which nobody may write.
  const std::vector<char>& room() const { return *memory_; }
  /// Copies the bytes of this view's elements, and no others, from one copy of the room to another.
  void copy_elements(const std::vector<char>& from, std::vector<char>& to) const;
  Dtype dtype() const { return view_.dtype; }
  const Sizes& sizes() const { return sizes_; }
  i64 size(int dim) const { return sizes_[static_cast<std::size_t>(dim)]; }
  i64 count() const;
  bool defined() const { return view_.rank >= 0; }

  /// Element i in row-major order of the sizes.
  double real(i64 index) const;
  i64 integer(i64 index) const;
  void set(i64 index, double value);
  void set_integer(i64 index, i64 value);
  /// By coordinates.
  i64 offset(std::span<const i64> coordinates) const;
  Tensor& fill(const test::FunctionRef<double(i64)>& value);

 private:
  char* element(i64 index) const;

  TensorView view_;
  Sizes sizes_;
  Sizes strides_;
  std::shared_ptr<std::vector<char>> memory_;
  std::size_t offset_bytes_ = 0, bytes_ = 0;  // of memory()
  std::size_t first_bytes_ = 0;               // of the first element in it
};

/// Numbers that do not repeat: the same from run to run.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  std::uint64_t bits();
  double between(double low, double high);
  i64 integer(i64 low, i64 high);  ///< low <= value < high

 private:
  std::uint64_t state_;
};

/// A value that the dtype holds exactly, spread over [low, high).
double exact_value(Dtype dtype, Random& random, double low, double high);
Tensor random_tensor(Dtype dtype, const Sizes& sizes, Layout layout, Random& random, double low = -2, double high = 2);

/// Of int64, low <= index < high.
Tensor random_indices(const Sizes& sizes, i64 low, i64 high, Random& random);

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One backend at one level.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual const std::string& level() const = 0;
  /// Before the first kernel at this level; what was opened at another is gone.
  virtual void enter() = 0;
  virtual bool has(std::string_view kernel) const = 0;
  /// It must have every kernel; else a test that needs one which is not there is skipped, and says so.
  virtual bool is_whole() const = 0;
  /// For tests of what a kernel refuses: skips the test where the backend need not have it and has not.
  virtual void require(std::string_view kernel) const = 0;
  void run(std::string_view kernel, std::vector<Tensor> outputs, std::vector<Tensor> inputs,
           const void* attributes = nullptr) {
    workspace_of(kernel, std::move(outputs), std::move(inputs), attributes);
  }
  /// Runs it, and says how many bytes of scratch it took.
  virtual i64 workspace_of(std::string_view kernel, std::vector<Tensor> outputs, std::vector<Tensor> inputs,
                           const void* attributes = nullptr) = 0;
  virtual DeviceDriver& driver() = 0;
};

/// The names of all kernels that a plugin registers.
std::set<std::string> kernels_of(const std::string& plugin);

/// Every level that the machine has, widest first.
std::vector<Bench*> benches();

/// Calls test(bench) for each level under a SCOPED_TRACE that names it.
void for_each_bench(const test::FunctionRef<void(Bench&)>& test);

/// Every element of `got` is within tolerance * |expected(i)| + absolute of expected(i); nan matches nan.
void expect_near(const Tensor& got, const test::FunctionRef<double(i64)>& expected, double tolerance,
                 std::string_view what, double absolute = 0);
void expect_equal(const Tensor& got, const test::FunctionRef<i64(i64)>& expected, std::string_view what);

/// Half a unit in the last place of one, relative: 2^-11 for float16, 2^-8, 2^-24, 2^-53.
double epsilon_of(Dtype dtype);

inline constexpr Dtype kFloats[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16};
inline constexpr Dtype kIntegers[] = {Dtype::kUInt8, Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64};
inline constexpr Dtype kAllTypes[] = {Dtype::kBool,    Dtype::kUInt8,  Dtype::kInt8,    Dtype::kInt16,
                                      Dtype::kInt32,   Dtype::kInt64,  Dtype::kFloat16, Dtype::kBFloat16,
                                      Dtype::kFloat32, Dtype::kFloat64};
/// Empty, one element, primes, rows shorter and longer than a vector.
const std::vector<Sizes>& shapes();
std::string to_string(const Sizes& sizes);
/// Coordinates of element `index` in row-major order.
Sizes coordinates(i64 index, const Sizes& sizes);

}  // namespace tenon::conformance
