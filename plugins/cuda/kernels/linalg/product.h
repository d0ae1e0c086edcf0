// A matrix product as both of its implementations take it.
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstdint>

namespace tenon::cuda {

/// Strides are in elements, of any size; that of the batch may be 0.
struct Matrix {
  void* data = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 0, batch_stride = 0;

  Matrix transposed() const { return {data, columns, rows, column_stride, row_stride, batch_stride}; }
  bool row_major() const { return (column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1); }
  bool column_major() const { return transposed().row_major(); }
};

/// y = alpha a b + beta addend, `batch` times.
struct Product {
  Dtype dtype = Dtype::kFloat32;
  std::int64_t batch = 1;
  Matrix a, b, y;
  Matrix addend;  ///< without data: none, and beta is 0. It may be y, or be broadcast
  double alpha = 1, beta = 0;
};

/// Any numbers but bool, any strides.
void tiled_product(KernelContext& context, const Product& product);

/// Floats, each matrix row- or column-major, none of them empty. False: there is no cuBLASLt, or it cannot do this.
bool cublaslt_product(KernelContext& context, const Product& product);

}  // namespace tenon::cuda
