// Matrix products over libraries.
//
// Both libraries run single-threaded inside our own pool: no second pool spins on the same cores, the number of threads
// is ours to change, and a slice gives the same bits wherever it runs.
#include "kernels/linalg/gemm.h"

#include <cblas.h>
#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <mutex>

#include "kernels/kernels.h"
#include "kernels/linalg/gemv.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

// Work below which a second thread costs more than it brings: multiply-adds per part.
constexpr double kLeastWork = 64.0 * 1024;

// Rows that are shorter fill no vector of gemv(), which would take their elements one by one.
constexpr std::int64_t kLeastTerms = 16;

// oneDNN adds the terms of a float product to one running sum, which over millions of terms loses digits (a dot product
// of 2^22 tenths was 4 % low). Long products of few elements are therefore cut into runs, summed apart and then
// together; where the result is large, a copy of it would cost too much, and sums are rarely so long.
constexpr std::int64_t kLongSum = 16 * 1024;
constexpr std::int64_t kRun = 4 * 1024;
constexpr std::int64_t kFewElements = 16 * 1024;

struct Operand {
  char letter;
  std::int64_t leading;
};

// Reads the matrix as row-major ('N') or as the transpose of a row-major one ('T').
Operand operand(const Matrix& m) {
  if (m.column_stride == 1 || m.columns == 1) return {'N', std::max({m.row_stride, m.columns, std::int64_t{1}})};
  return {'T', std::max({m.column_stride, m.rows, std::int64_t{1}})};
}

Matrix row_slice(const Matrix& m, std::int64_t begin, std::int64_t end, std::int64_t element_bytes) {
  return {m.data + begin * m.row_stride * element_bytes, end - begin, m.columns, m.row_stride, m.column_stride};
}
Matrix column_slice(const Matrix& m, std::int64_t begin, std::int64_t end, std::int64_t element_bytes) {
  return row_slice(m.transposed(), begin, end, element_bytes).transposed();
}

// Of floats: one side is a vector, and the rows that it is multiplied with lie as gemv() reads them. False where not.
bool product_with_vector(const Matrix& a, const Matrix& b, const Matrix& c, Scale scale) {
  if (c.rows != 1 && c.columns != 1) return false;
  if (c.rows == 1 && c.columns > 1) return product_with_vector(b.transposed(), a.transposed(), c.transposed(), scale);
  if (a.columns < kLeastTerms || a.columns > kLongSum || a.column_stride != 1 || b.row_stride != 1) return false;
  level_functions().gemv({.a = reinterpret_cast<const float*>(a.data),
                          .x = reinterpret_cast<const float*>(b.data),
                          .y = reinterpret_cast<float*>(c.data),
                          .rows = c.rows,
                          .terms = a.columns,
                          .row_stride = a.row_stride,
                          .y_stride = c.row_stride,
                          .alpha = static_cast<float>(scale.alpha),
                          .beta = static_cast<float>(scale.beta)});
  return true;
}

void use_one_blas_thread() {
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
}

}  // namespace

OpenMpGuard::OpenMpGuard(int threads) : previous_(omp_get_max_threads()) {
  if (previous_ != threads) omp_set_num_threads(threads);
}
OpenMpGuard::~OpenMpGuard() { omp_set_num_threads(previous_); }

bool is_blas_matrix(const Matrix& m) {
  if (m.rows <= 0 || m.columns <= 0) return true;
  const bool row_major = (m.column_stride == 1 || m.columns == 1) && (m.row_stride >= m.columns || m.rows == 1);
  const bool column_major = (m.row_stride == 1 || m.rows == 1) && (m.column_stride >= m.rows || m.columns == 1);
  return row_major || column_major;
}

void gemm(Dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, Scale scale) {
  const std::int64_t m = c.rows, n = c.columns, k = a.columns;
  if (m == 0 || n == 0) return;
  if (k == 0) {  // the libraries differ in what they make of it
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t at = i * c.row_stride + j;
        if (dtype == Dtype::kFloat64) {
          double& value = reinterpret_cast<double*>(c.data)[at];
          value = scale.beta == 0 ? 0 : value * scale.beta;
        } else {
          float& value = reinterpret_cast<float*>(c.data)[at];
          value = scale.beta == 0 ? 0 : value * static_cast<float>(scale.beta);
        }
      }
    }
    return;
  }
  const Operand left = operand(a), right = operand(b);
  const std::int64_t leading = std::max({c.row_stride, n, std::int64_t{1}});
  if (dtype == Dtype::kFloat64) {
    use_one_blas_thread();
    cblas_dgemm(CblasRowMajor, left.letter == 'N' ? CblasNoTrans : CblasTrans,
                right.letter == 'N' ? CblasNoTrans : CblasTrans, static_cast<blasint>(m), static_cast<blasint>(n),
                static_cast<blasint>(k), scale.alpha, reinterpret_cast<const double*>(a.data),
                static_cast<blasint>(left.leading), reinterpret_cast<const double*>(b.data),
                static_cast<blasint>(right.leading), scale.beta, reinterpret_cast<double*>(c.data),
                static_cast<blasint>(leading));
    return;
  }
  if (product_with_vector(a, b, c, scale)) return;
  const OpenMpGuard one(1);
  const auto product = [&](std::int64_t from, std::int64_t terms, float beta, float* out, std::int64_t out_leading) {
    const float* const x = reinterpret_cast<const float*>(a.data) + from * a.column_stride;
    const float* const y = reinterpret_cast<const float*>(b.data) + from * b.row_stride;
    const dnnl_status_t status = dnnl_sgemm(left.letter, right.letter, m, n, terms, static_cast<float>(scale.alpha), x,
                                            left.leading, y, right.leading, beta, out, out_leading);
    if (status != dnnl_success) {
      fail("cpu: matrix product %lld x %lld x %lld: oneDNN reports status %d", static_cast<long long>(m),
           static_cast<long long>(n), static_cast<long long>(k), static_cast<int>(status));
    }
  };
  float* const out = reinterpret_cast<float*>(c.data);
  if (k <= kLongSum || m * n > kFewElements) return product(0, k, static_cast<float>(scale.beta), out, leading);
  float partial[kFewElements];
  product(0, kRun, static_cast<float>(scale.beta), out, leading);
  for (std::int64_t from = kRun; from < k; from += kRun) {
    product(from, std::min(kRun, k - from), 0, partial, n);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) out[i * leading + j] += partial[i * n + j];
    }
  }
}

void parallel_gemm(Dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, Scale scale) {
  const double work = static_cast<double>(c.rows) * static_cast<double>(c.columns) * static_cast<double>(a.columns);
  const int threads = thread_count();
  if (threads == 1 || work < 2 * kLeastWork || in_part()) return gemm(dtype, a, b, c, scale);
  struct Job {
    Dtype dtype;
    const Matrix &a, &b, &c;
    Scale scale;
  } job{dtype, a, b, c, scale};
  // Cut the longer side: the shorter operand is then read by every thread.
  const std::int64_t per_line = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kLeastWork * static_cast<double>(std::max(c.rows, c.columns)) / work));
  if (c.rows >= c.columns) {
    parallel_ranges(
        c.rows, per_line, 16,
        [](void* state, std::int64_t begin, std::int64_t end) {
          const Job& j = *static_cast<Job*>(state);
          const std::int64_t bytes = static_cast<std::int64_t>(size_of(j.dtype));
          gemm(j.dtype, row_slice(j.a, begin, end, bytes), j.b, row_slice(j.c, begin, end, bytes), j.scale);
        },
        &job);
  } else {
    parallel_ranges(
        c.columns, per_line, 16,
        [](void* state, std::int64_t begin, std::int64_t end) {
          const Job& j = *static_cast<Job*>(state);
          const std::int64_t bytes = static_cast<std::int64_t>(size_of(j.dtype));
          gemm(j.dtype, j.a, column_slice(j.b, begin, end, bytes), column_slice(j.c, begin, end, bytes), j.scale);
        },
        &job);
  }
}

void batched_gemm(Dtype dtype, std::int64_t count, const Matrix& a, std::int64_t a_step, const Matrix& b,
                  std::int64_t b_step, const Matrix& c, std::int64_t c_step, Scale scale) {
  struct Job {
    Dtype dtype;
    Matrix a, b, c;
    std::int64_t a_step, b_step, c_step;
    Scale scale;
    void run(std::int64_t index, bool parallel) const {
      const std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
      Matrix x = a, y = b, z = c;
      x.data += index * a_step * bytes;
      y.data += index * b_step * bytes;
      z.data += index * c_step * bytes;
      (parallel ? parallel_gemm : gemm)(dtype, x, y, z, scale);
    }
  } job{dtype, a, b, c, a_step, b_step, c_step, scale};
  const double each = static_cast<double>(c.rows) * static_cast<double>(c.columns) * static_cast<double>(a.columns);
  if (count < thread_count()) {
    for (std::int64_t i = 0; i < count; ++i) job.run(i, true);
    return;
  }
  parallel_ranges(
      count, static_cast<std::int64_t>(kLeastWork / std::max(1.0, each)) + 1, 1,
      [](void* state, std::int64_t begin, std::int64_t end) {
        const Job& j = *static_cast<Job*>(state);
        for (std::int64_t i = begin; i < end; ++i) j.run(i, false);
      },
      &job);
}

}  // namespace tenon::cpu
