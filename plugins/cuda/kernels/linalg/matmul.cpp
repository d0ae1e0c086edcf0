// matmul: y = alpha a b + beta addend, batched or not. Floats go to cuBLASLt, and to it without a copy where one of the
// strides is 1; integers, and everything without the library, to Tenon's own tiles.
#include <tenon/kernel/attributes/linear.h>

#include "kernels/kernels.h"
#include "kernels/linalg/product.h"

#include <array>
#include <memory>

namespace tenon::cuda {
namespace {

Matrix matrix_of(const TensorView& v) {
  const int r = v.rank;
  Matrix m{v.data, v.sizes[r - 2], v.sizes[r - 1], v.strides[r - 2], v.strides[r - 1]};
  if (r == 3 && v.sizes[0] > 1) m.batch_stride = v.strides[0];
  return m;
}

/// A contiguous view of `like`'s sizes in scratch.
struct Dense {
  Dense(KernelContext& context, const TensorView& like) : view(like) {
    std::int64_t count = 1;
    for (int d = like.rank - 1; d >= 0; --d) {
      strides[static_cast<std::size_t>(d)] = count;
      count *= like.sizes[d];
    }
    view.strides = strides.data();
    view.data = context.scratch(static_cast<std::size_t>(count) * size_of(like.dtype));
  }
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
  std::array<std::int64_t, 3> strides{};
  TensorView view;
};

bool has_unit_stride(const Matrix& m) { return m.row_major() || m.column_major(); }

/// Whether the products of a batch lie one behind the other, as those that are written must.
bool lie_apart(const Matrix& m, std::int64_t batch) {
  return batch == 1 || m.batch_stride > (m.rows - 1) * m.row_stride + (m.columns - 1) * m.column_stride;
}

/// One right operand for the whole batch, and rows that follow each other: a single tall product. It has to lie as the
/// library reads it, too: windows that overlap do not, nor single rows whose elements lie apart.
void join_batch(Product& p) {
  const auto joined = [&](Matrix m) {
    m.rows *= p.batch;
    return m;
  };
  const auto follow = [](const Matrix& m) { return m.batch_stride == m.rows * m.row_stride; };
  if (p.batch == 1 || p.b.batch_stride != 0 || !follow(p.a) || !follow(p.y)) return;
  if (!has_unit_stride(joined(p.a)) || !has_unit_stride(joined(p.y))) return;
  if (p.addend.data != nullptr && !follow(p.addend)) return;
  for (Matrix* m : {&p.a, &p.y, &p.addend}) *m = joined(*m);
  p.batch = 1;
}

bool library_product(KernelContext& context, const Product& given, Views outputs, Views inputs) {
  if (!is_floating_point(given.dtype) || given.a.columns == 0) return false;
  Product p = given;
  std::array<std::unique_ptr<Dense>, 2> dense;
  const std::array<Matrix*, 2> operands{&p.a, &p.b};
  for (std::size_t i = 0; i < 2; ++i) {
    if (has_unit_stride(*operands[i])) continue;
    dense[i] = std::make_unique<Dense>(context, inputs[i]);
    copy_view(context, dense[i]->view, inputs[i]);
    *operands[i] = matrix_of(dense[i]->view);
  }
  if (has_unit_stride(p.y) && lie_apart(p.y, p.batch)) {
    join_batch(p);
    return cublaslt_product(context, p);
  }
  const Dense result(context, outputs[0]);
  p.y = matrix_of(result.view);
  if (!cublaslt_product(context, p)) return false;
  copy_view(context, outputs[0], result.view);
  return true;
}

void matmul(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const MatmulAttributes given =
      attributes != nullptr ? *static_cast<const MatmulAttributes*>(attributes) : MatmulAttributes{};
  const TensorView& y = outputs[0];
  if (y.element_count() == 0) return;
  Product p{.dtype = y.dtype,
            .batch = y.rank == 3 ? y.sizes[0] : 1,
            .a = matrix_of(inputs[0]),
            .b = matrix_of(inputs[1]),
            .y = matrix_of(y),
            .alpha = given.alpha};
  if (inputs.size() > 2 && inputs[2].defined() && given.beta != 0) {
    p.addend = matrix_of(inputs[2]);
    p.beta = given.beta;
  }
  if (!library_product(context, p, outputs, inputs)) tiled_product(context, p);
}

}  // namespace

void add_matmul(const KernelSink& sink) { sink.add(sink.host, "matmul", &matmul); }

}  // namespace tenon::cuda
