// oneDNN's matrix products of bfloat16: a primitive for each shape, kept, each call on one thread and one slice of
// rows.
#include "kernels/linalg/bfloat16.h"

#include <cpuid.h>
#include <dnnl.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "kernels/kernels.h"
#include "kernels/nn/convolution_plan.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

// Multiply-adds below which converting to float32 costs less than oneDNN's call.
constexpr double kLeastWork = 64.0 * 1024;
// As in gemm.cpp: longer sums of few elements lose digits in one running sum.
constexpr std::int64_t kLongSum = 16 * 1024, kFewElements = 16 * 1024;
// Rows of a slice are a multiple of this, so that few shapes come up.
constexpr std::int64_t kRowStep = 16;

/// Whether processor and operating system have tiles of bfloat16.
bool has_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAmxBfloat16 = 1U << 22, kAmxTile = 1U << 24, kOsSaves = 1U << 27, kTileState = 3U << 17;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAmxBfloat16) == 0 || (d & kAmxTile) == 0) return false;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kOsSaves) == 0) return false;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

/// Whether vdpbf16ps, AVX512-BF16's product of pairs, is worth taking: AMD's processors issue it as often as a product
/// of floats, so that it does twice the work; Intel's a quarter as often (bench/results/mixed_precision.md).
bool has_fast_pairs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvx512Bfloat16 = 1U << 5;
  if (!__get_cpuid(0, &a, &b, &c, &d) || b != signature_AMD_ebx || c != signature_AMD_ecx || d != signature_AMD_edx)
    return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvx512Bfloat16) != 0;
}

bool has_fast_products() { return has_tiles() || has_fast_pairs(); }

std::atomic<bool> in_16_bits{has_fast_products()};

/// What a product's primitive depends on; strides in elements.
struct Shape {
  std::int64_t rows, columns, terms;
  std::int64_t a_row, a_column, b_row, b_column, c_row;
  double beta;
  bool bias;
  // Several in one call, summed into float32.
  std::int64_t heads = 1, a_step = 0, b_step = 0, c_step = 0;
  bool wide = false;
  auto tie() const {
    return std::tie(rows, columns, terms, a_row, a_column, b_row, b_column, c_row, beta, bias, heads, a_step, b_step,
                    c_step, wide);
  }
  bool operator<(const Shape& other) const { return tie() < other.tie(); }
};

struct Product {
  memory::desc a, b, c, bias, scratchpad;
  dnnl::matmul primitive;
  std::size_t scratchpad_bytes = 0;
};

std::unique_ptr<Product> make(const Shape& s) {
  const auto type = memory::data_type::bf16;
  auto product = std::make_unique<Product>();
  const auto matrix = [&](memory::data_type of, memory::dims sizes, memory::dims strides, std::int64_t step) {
    if (s.wide) {
      sizes.insert(sizes.begin(), s.heads);
      strides.insert(strides.begin(), step);
    }
    return memory::desc(sizes, of, strides);
  };
  product->a = matrix(type, {s.rows, s.terms}, {s.a_row, s.a_column}, s.a_step);
  product->b = matrix(type, {s.terms, s.columns}, {s.b_row, s.b_column}, s.b_step);
  product->c = matrix(s.wide ? memory::data_type::f32 : type, {s.rows, s.columns}, {s.c_row, 1}, s.c_step);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.beta != 0) {
    dnnl::post_ops sum;
    sum.append_sum(static_cast<float>(s.beta));
    attributes.set_post_ops(sum);
  }
  if (s.bias) product->bias = memory::desc({1, s.columns}, type, memory::dims{s.columns, 1});
  const dnnl::matmul::primitive_desc description(
      s.bias ? dnnl::matmul::desc(product->a, product->b, product->bias, product->c)
             : dnnl::matmul::desc(product->a, product->b, product->c),
      attributes, onednn_engine());
  if (std::string_view(description.impl_info_str()).find("ref") != std::string_view::npos) return nullptr;  // slow
  product->primitive = dnnl::matmul(description);
  product->scratchpad = description.scratchpad_desc();
  product->scratchpad_bytes = Side::align(product->scratchpad.get_size());
  return product;
}

/// Built once per shape and never dropped: a program has few. Null where oneDNN has no implementation.
const Product* product_of(const Shape& shape) {
  static std::mutex mutex;
  static auto& known = *new std::map<Shape, std::unique_ptr<Product>>;
  const std::lock_guard lock(mutex);
  const auto found = known.find(shape);
  if (found != known.end()) return found->second.get();
  const OpenMpGuard one(1);
  std::unique_ptr<Product> product;
  try {
    product = make(shape);
  } catch (const dnnl::error&) {
  }
  return known.emplace(shape, std::move(product)).first->second.get();
}

Shape shape_of(const HeadProducts& p) {
  return {.rows = p.c.rows,
          .columns = p.c.columns,
          .terms = p.a.columns,
          .a_row = p.a.row_stride,
          .a_column = p.a.column_stride,
          .b_row = p.b.row_stride,
          .b_column = p.b.column_stride,
          .c_row = p.c.row_stride,
          .beta = p.beta,
          .bias = false,
          .heads = p.heads,
          .a_step = p.a_step,
          .b_step = p.b_step,
          .c_step = p.c_step,
          .wide = true};
}

/// Products, or slices of rows of one: piece i begins at i steps.
struct Job {
  const Product *piece, *last;
  std::int64_t pieces, parts;
  char *a, *b, *c, *bias, *scratch;
  std::int64_t a_step, b_step, c_step;  ///< bytes
  std::size_t scratch_step;
  dnnl_status_t status = dnnl_success;
};

void run_part(void* state, int part) {
  Job& job = *static_cast<Job*>(state);
  try {
    const OpenMpGuard one(1);
    for (std::int64_t i = part; i < job.pieces; i += job.parts) {
      const Product& product = i == job.pieces - 1 ? *job.last : *job.piece;
      const dnnl::engine& engine = onednn_engine();
      std::unordered_map<int, memory> arguments{
          {DNNL_ARG_SRC, memory(product.a, engine, job.a + i * job.a_step)},
          {DNNL_ARG_WEIGHTS, memory(product.b, engine, job.b + i * job.b_step)},
          {DNNL_ARG_DST, memory(product.c, engine, job.c + i * job.c_step)},
          {DNNL_ARG_SCRATCHPAD,
           memory(product.scratchpad, engine, job.scratch + static_cast<std::size_t>(part) * job.scratch_step)}};
      if (job.bias) arguments.emplace(DNNL_ARG_BIAS, memory(product.bias, engine, job.bias));
      product.primitive.execute(onednn_stream(), arguments);
    }
  } catch (const dnnl::error& error) {
    job.status = error.status;
  }
}

}  // namespace

void choose_bfloat16_products(std::string_view word) {
  in_16_bits = word == "onednn" || (word == "auto" && has_fast_products());
}
bool has_bfloat16_products() noexcept { return in_16_bits.load(std::memory_order_relaxed); }

bool batched_gemm_bfloat16(KernelContext& context, std::int64_t count, const Matrix& a_given, std::int64_t a_step,
                           const Matrix& b_given, std::int64_t b_step, const Matrix& c_given, std::int64_t c_step,
                           double beta, void* bias) {
  constexpr std::int64_t kBytes = 2;
  const double elements = static_cast<double>(c_given.rows) * static_cast<double>(c_given.columns);
  const double work = elements * static_cast<double>(a_given.columns);
  if (work < kLeastWork || (a_given.columns > kLongSum && elements <= kFewElements)) return false;
  const std::int64_t threads = in_part() ? 1 : thread_count();
  // Of a single row or column the stride means nothing; oneDNN has to read something simple.
  const auto plain = [](Matrix m) {
    if (m.columns == 1 && m.row_stride != 1) m.column_stride = 1;
    if (m.rows == 1 && m.column_stride != 1) m.row_stride = 1;
    if (m.rows == 1 && m.column_stride == 1) m.row_stride = m.columns;
    return m;
  };
  const Matrix a = plain(a_given), b = plain(b_given), c = plain(c_given);
  Shape shape{c.rows,       c.columns,       a.columns,    a.row_stride, a.column_stride,
              b.row_stride, b.column_stride, c.row_stride, beta,         bias != nullptr};
  Job job{.piece = nullptr, .last = nullptr, .pieces = count, .parts = std::min(count, threads)};
  job.a_step = a_step * kBytes;
  job.b_step = b_step * kBytes;
  job.c_step = c_step * kBytes;
  std::int64_t rest = c.rows;
  if (count == 1 && threads > 1 && work >= 2 * kLeastWork) {
    const std::int64_t rows = ((c.rows + threads - 1) / threads + kRowStep - 1) / kRowStep * kRowStep;
    shape.rows = std::min(rows, c.rows);
    job.pieces = job.parts = (c.rows + shape.rows - 1) / shape.rows;
    rest = c.rows - (job.pieces - 1) * shape.rows;
    job.a_step = shape.rows * a.row_stride * kBytes;
    job.b_step = 0;
    job.c_step = shape.rows * c.row_stride * kBytes;
  }
  job.piece = product_of(shape);
  shape.rows = rest;
  job.last = product_of(shape);
  if (!job.piece || !job.last) return false;
  job.a = a.data;
  job.b = b.data;
  job.c = c.data;
  job.bias = static_cast<char*>(bias);
  job.scratch_step = std::max(job.piece->scratchpad_bytes, job.last->scratchpad_bytes);
  job.scratch = static_cast<char*>(context.scratch(static_cast<std::size_t>(job.parts) * job.scratch_step));
  run_parts(static_cast<int>(job.parts), &run_part, &job);
  if (job.status != dnnl_success) {
    fail("cpu: matrix product of bfloat16: oneDNN reports status %d", static_cast<int>(job.status));
  }
  return true;
}

bool has_product(const HeadProducts& products) {
  const Product* const product = product_of(shape_of(products));
  return product != nullptr && product->scratchpad_bytes == 0;
}

void multiply(const HeadProducts& products) {
  const Product& product = *product_of(shape_of(products));
  const OpenMpGuard one(1);
  const dnnl::engine& engine = onednn_engine();
  try {
    product.primitive.execute(onednn_stream(), {{DNNL_ARG_SRC, memory(product.a, engine, products.a.data)},
                                                {DNNL_ARG_WEIGHTS, memory(product.b, engine, products.b.data)},
                                                {DNNL_ARG_DST, memory(product.c, engine, products.c.data)}});
  } catch (const dnnl::error& error) {
    fail("cpu: products of heads in bfloat16: oneDNN reports status %d", static_cast<int>(error.status));
  }
}

}  // namespace tenon::cpu
