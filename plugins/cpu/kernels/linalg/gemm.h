// Matrix products over libraries: oneDNN's sgemm for float, the CBLAS for double, each call on one thread and one
// slice.
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstdint>

namespace tenon::cpu {

/// A matrix as BLAS can take it: one of the strides is 1 (or the matrix is one row or column), the other at least as
/// large as what it strides over.
struct Matrix {
  char* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 0;  ///< in elements

  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

/// Whether the library reads this matrix without a copy.
bool is_blas_matrix(const Matrix& matrix);

struct Scale {
  double alpha = 1;
  double beta = 0;  ///< 0: what c holds is not read
};

/// c = alpha a b + beta c, c row-major. dtype is float32 or float64. On the calling thread alone.
void gemm(Dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, Scale scale = {});

/// The same, cut over the thread pool by rows or columns of c.
void parallel_gemm(Dtype dtype, const Matrix& a, const Matrix& b, const Matrix& c, Scale scale = {});

/// `count` products of equal sizes that lie the given numbers of elements apart: over the pool by product, or each by
/// slices where there are fewer products than threads.
void batched_gemm(Dtype dtype, std::int64_t count, const Matrix& a, std::int64_t a_step, const Matrix& b,
                  std::int64_t b_step, const Matrix& c, std::int64_t c_step, Scale scale = {});

/// While it lives, OpenMP regions that this thread opens (oneDNN's) have `threads` threads.
class OpenMpGuard {
 public:
  explicit OpenMpGuard(int threads);
  ~OpenMpGuard();
  OpenMpGuard(const OpenMpGuard&) = delete;
  OpenMpGuard& operator=(const OpenMpGuard&) = delete;

 private:
  int previous_;
};

}  // namespace tenon::cpu
