// Products of a matrix and a vector: y = alpha A x + beta y, A float32 and row-major, compiled for each level.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// y[i * y_stride] = alpha * (row i of A) . x + beta * y[i * y_stride]. x and the rows of A are contiguous.
struct MatrixVector {
  const float* a = nullptr;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0, terms = 0;           ///< terms: at least 16
  std::int64_t row_stride = 0, y_stride = 1;  ///< in elements
  float alpha = 1, beta = 0;                  ///< beta 0: what y holds is not read
};

}  // namespace tenon::cpu
