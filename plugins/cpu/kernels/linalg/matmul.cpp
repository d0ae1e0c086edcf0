// matmul: y = alpha a b + beta addend, batched or not. Operands that BLAS cannot read as they lie are packed into
// scratch.
#include <tenon/kernel/attributes/linear.h>

#include <utility>

#include "kernels/linalg/bfloat16.h"
#include "kernels/linalg/gemm.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kIntegerGrain = 16384;

struct Batch {
  Matrix matrix;
  i64 count = 1, step = 0;
};

Batch batch_of(const TensorView& v) {
  const int r = v.rank;
  Batch b{{static_cast<char*>(v.data), v.sizes[r - 2], v.sizes[r - 1], v.strides[r - 2], v.strides[r - 1]}};
  if (r == 3) {
    b.count = v.sizes[0];
    b.step = b.count > 1 ? v.strides[0] : 0;
  }
  return b;
}

// A view of `like`'s sizes on scratch memory, row-major; a copy of floats whose columns are contiguous stays
// column-major, since libraries read that as well and a transposition costs more than the copy.
struct Packed {
  TensorView view;
  i64 strides[kMaxRank];
};
void pack(KernelContext& context, Packed& packed, const TensorView& like, Dtype dtype, bool copy) {
  packed.view = like;
  packed.view.dtype = dtype;
  packed.view.strides = packed.strides;
  const int last = like.rank - 1;
  const bool by_columns =
      copy && dtype != Dtype::kInt64 && like.strides[last] != 1 && like.strides[last - 1] == 1 && like.sizes[last] > 1;
  i64 expected = 1;
  for (int i = 0; i <= last; ++i) {
    const int d = by_columns && i < 2 ? last - 1 + i : last - i;
    packed.strides[d] = expected;
    expected *= like.sizes[d];
  }
  packed.view.data = context.scratch(static_cast<std::size_t>(expected * bytes_of(dtype)));
  if (copy) level_functions().copy(packed.view, like);
}

void integer_product(const Batch& a, const Batch& b, const Batch& c, const MatmulAttributes& scale, bool accumulate) {
  const i64 m = c.matrix.rows, n = c.matrix.columns, k = a.matrix.columns;
  const i64 alpha = static_cast<i64>(scale.alpha), beta = static_cast<i64>(scale.beta);
  parallel(c.count * m, kIntegerGrain / larger<i64>(1, n * k) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const i64 batch = r / m, row = r % m;
      const i64* x = reinterpret_cast<const i64*>(a.matrix.data) + batch * a.step + row * k;
      const i64* y = reinterpret_cast<const i64*>(b.matrix.data) + batch * b.step;
      i64* z = reinterpret_cast<i64*>(c.matrix.data) + batch * c.step + row * n;
      for (i64 j = 0; j < n; ++j) z[j] = accumulate ? z[j] * beta : 0;
      for (i64 i = 0; i < k; ++i) {
        const i64 left = alpha * x[i];
        for (i64 j = 0; j < n; ++j) z[j] += left * y[i * n + j];
      }
    }
  });
}

/// Products of bfloat16 by oneDNN, where operands and result lie as it reads and writes them. False where they do not,
/// or float32 is faster.
bool product_of_bfloat16(KernelContext& context, const TensorView& y, Views inputs, bool has_addend,
                         const MatmulAttributes& given) {
  const TensorView &a = at(inputs, 0), &b = at(inputs, 1);
  if (!has_bfloat16_products() || given.alpha != 1) return false;
  for (const TensorView* view : {&y, &a, &b}) {
    if (view->dtype != Dtype::kBFloat16 || !is_blas_matrix(batch_of(*view).matrix)) return false;
  }
  Batch left = batch_of(a), right = batch_of(b), product = batch_of(y);
  if (left.matrix.columns == 0) return false;
  if (product.matrix.column_stride != 1 && product.matrix.columns != 1) {  // the transposed product is row-major
    std::swap(left, right);
    for (Batch* batch : {&left, &right, &product}) batch->matrix = batch->matrix.transposed();
  }
  if (has_addend && at(inputs, 2).data != y.data) level_functions().copy(y, at(inputs, 2));
  return batched_gemm_bfloat16(context, product.count, left.matrix, left.step, right.matrix, right.step, product.matrix,
                               product.step, has_addend ? given.beta : 0);
}

void matmul(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const MatmulAttributes kPlain;
  const auto& given = attributes ? *static_cast<const MatmulAttributes*>(attributes) : kPlain;
  const TensorView& y = at(outputs, 0);
  if (numel(y) == 0) return;
  const bool has_addend = inputs.size() > 2 && at(inputs, 2).rank >= 0 && given.beta != 0;
  if (product_of_bfloat16(context, y, inputs, has_addend, given)) return;
  const bool integer = lane_of(y.dtype) == Lane::kI64;
  const Dtype compute = integer ? Dtype::kInt64 : y.dtype == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;

  Packed packed_a, packed_b, packed_y;
  const TensorView* a = &at(inputs, 0);
  const TensorView* b = &at(inputs, 1);
  const TensorView* target = &y;
  if (a->dtype != compute || (integer ? !contiguous(*a) : !is_blas_matrix(batch_of(*a).matrix))) {
    pack(context, packed_a, *a, compute, true);
    a = &packed_a.view;
  }
  if (b->dtype != compute || (integer ? !contiguous(*b) : !is_blas_matrix(batch_of(*b).matrix))) {
    pack(context, packed_b, *b, compute, true);
    b = &packed_b.view;
  }
  const Matrix shape = batch_of(y).matrix;
  // A column-major output is the transposed product.
  const bool row_major =
      (shape.column_stride == 1 || shape.columns == 1) && (shape.row_stride >= shape.columns || shape.rows == 1);
  const bool column_major = !row_major && (shape.row_stride == 1 || shape.rows == 1) &&
                            (shape.column_stride >= shape.rows || shape.columns == 1);
  if (y.dtype != compute || (integer ? !contiguous(y) : !row_major && !column_major)) {
    pack(context, packed_y, y, compute, false);
    target = &packed_y.view;
  }
  if (has_addend && at(inputs, 2).data != target->data) level_functions().copy(*target, at(inputs, 2));

  Batch left = batch_of(*a), right = batch_of(*b), product = batch_of(*target);
  // One right operand for the whole batch, rows that follow each other: a single tall product.
  if (product.count > 1 && right.step == 0 && !integer && row_major && left.matrix.column_stride == 1 &&
      left.step == left.matrix.rows * left.matrix.row_stride &&
      product.step == product.matrix.rows * product.matrix.row_stride) {
    left.matrix.rows *= product.count;
    product.matrix.rows *= product.count;
    product.count = 1;
  }
  if (integer) {
    integer_product(left, right, product, given, has_addend);
  } else {
    const Scale scale{given.alpha, has_addend ? given.beta : 0};
    const bool flip = target == &y && column_major;
    if (flip) {
      batched_gemm(compute, product.count, right.matrix.transposed(), right.step, left.matrix.transposed(), left.step,
                   product.matrix.transposed(), product.step, scale);
    } else {
      batched_gemm(compute, product.count, left.matrix, left.step, right.matrix, right.step, product.matrix,
                   product.step, scale);
    }
  }
  if (target != &y) level_functions().copy(y, *target);
}

}  // namespace

void add_matmul(const KernelSink& sink) { sink.add(sink.host, "matmul", &matmul); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
