// matmul: y = alpha a b + beta addend, batched or not. Operands that BLAS cannot read as they lie are packed into
// scratch; those of 16 bits become float32 there a panel at a time, so that large ones need little of it.
#include <tenon/kernel/attributes/linear.h>

#include <utility>

#include "kernels/linalg/bfloat16.h"
#include "kernels/linalg/gemm.h"
#include "kernels/linalg/view_range.h"
#include "kernels/pointwise/lanes.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kIntegerGrain = 16384;
// What is packed at a time of operands of 16 bits: as much as products run well on, and little beside a step's tensors.
constexpr i64 kPanelBytes = 4 << 20;
constexpr i64 kPanelStep = 64;  // rows, columns or terms of a panel are a multiple of it
constexpr i64 kAlignment = 64;

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

i64 aligned(i64 bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Where operands are packed: scratch as it is asked for, or one piece of it that is used again and again.
class Room {
 public:
  explicit Room(KernelContext& context) : context_(&context) {}
  Room(KernelContext& context, i64 bytes)
      : next_(static_cast<char*>(context.scratch(static_cast<std::size_t>(bytes)))) {}
  void* take(i64 bytes) {
    if (context_ != nullptr) return context_->scratch(static_cast<std::size_t>(bytes));
    return std::exchange(next_, next_ + aligned(bytes));
  }
  char* mark() const { return next_; }
  void back_to(char* mark) { next_ = mark; }

 private:
  KernelContext* context_ = nullptr;
  char* next_ = nullptr;
};

// A view of `like`'s sizes on scratch memory, row-major; a copy of floats whose columns are contiguous stays
// column-major, since libraries read that as well and a transposition costs more than the copy.
struct Packed {
  TensorView view;
  i64 strides[kMaxRank];
};
void pack(Room& room, Packed& packed, const TensorView& like, Dtype dtype, bool copy) {
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
  packed.view.data = room.take(expected * bytes_of(dtype));
  if (copy) level_functions().copy(packed.view, like);
}

void integer_product(const Batch& a, const Batch& b, const Batch& c, const Scale& scale, bool accumulate) {
  const i64 m = c.matrix.rows, n = c.matrix.columns, k = a.matrix.columns;
  // Integers wrap.
  const u64 alpha = static_cast<u64>(static_cast<i64>(scale.alpha));
  const u64 beta = static_cast<u64>(static_cast<i64>(scale.beta));
  parallel(c.count * m, kIntegerGrain / larger<i64>(1, n * k) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const i64 batch = r / m, row = r % m;
      const u64* x = reinterpret_cast<const u64*>(a.matrix.data) + batch * a.step + row * k;
      const u64* y = reinterpret_cast<const u64*>(b.matrix.data) + batch * b.step;
      u64* z = reinterpret_cast<u64*>(c.matrix.data) + batch * c.step + row * n;
      for (i64 j = 0; j < n; ++j) z[j] = accumulate ? z[j] * beta : 0;
      for (i64 i = 0; i < k; ++i) {
        const u64 left = alpha * x[i];
        for (i64 j = 0; j < n; ++j) z[j] += left * y[i * n + j];
      }
    }
  });
}

/// Whether an addend of y's sizes is one dense row for every row of y.
bool is_row_for_all(const TensorView& addend, const TensorView& y) {
  const int last = y.rank - 1;
  if (addend.dtype != y.dtype || (addend.strides[last] != 1 && addend.sizes[last] != 1)) return false;
  for (int d = 0; d < last; ++d) {
    if (addend.strides[d] != 0 && addend.sizes[d] != 1) return false;
  }
  return true;
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
  // A column-major product is the transposed one, row-major.
  const bool transposed = product.matrix.column_stride != 1 && product.matrix.columns != 1;
  if (transposed) {
    std::swap(left, right);
    for (Batch* batch : {&left, &right, &product}) batch->matrix = batch->matrix.transposed();
  }
  if (has_addend && is_row_for_all(at(inputs, 2), y) && given.beta == 1 && !transposed &&
      batched_gemm_bfloat16(context, product.count, left.matrix, left.step, right.matrix, right.step, product.matrix,
                            product.step, 0, at(inputs, 2).data)) {
    return true;
  }
  if (has_addend && at(inputs, 2).data != y.data) level_functions().copy(y, at(inputs, 2));
  return batched_gemm_bfloat16(context, product.count, left.matrix, left.step, right.matrix, right.step, product.matrix,
                               product.step, has_addend ? given.beta : 0, nullptr);
}

// Operands of one product, or of a batch of products: y <- alpha a b + beta addend. The addend is of y's sizes.
struct Operands {
  TensorView y, a, b, addend;
  Scale scale;
  bool has_addend;
};

// What packing all of it takes at most.
i64 packed_bytes(const Operands& o, Dtype compute) {
  const i64 element = bytes_of(compute);
  return aligned(numel(o.y) * element) + aligned(numel(o.a) * element) + aligned(numel(o.b) * element);
}

bool is_packed(const TensorView& v, Dtype compute) {
  const bool integer = compute == Dtype::kInt64;
  return v.dtype != compute || (integer ? !contiguous(v) : !is_blas_matrix(batch_of(v).matrix));
}

void multiply(Room& room, const Operands& o, Dtype compute) {
  const TensorView& y = o.y;
  const bool integer = compute == Dtype::kInt64;
  Packed packed_a, packed_b, packed_y;
  const TensorView *a = &o.a, *b = &o.b, *target = &y;
  if (is_packed(*a, compute)) {
    pack(room, packed_a, *a, compute, true);
    a = &packed_a.view;
  }
  if (is_packed(*b, compute)) {
    pack(room, packed_b, *b, compute, true);
    b = &packed_b.view;
  }
  const Matrix shape = batch_of(y).matrix;
  // A column-major output is the transposed product.
  const bool row_major =
      (shape.column_stride == 1 || shape.columns == 1) && (shape.row_stride >= shape.columns || shape.rows == 1);
  const bool column_major = !row_major && (shape.row_stride == 1 || shape.rows == 1) &&
                            (shape.column_stride >= shape.rows || shape.columns == 1);
  if (y.dtype != compute || (integer ? !contiguous(y) : !row_major && !column_major)) {
    pack(room, packed_y, y, compute, false);
    target = &packed_y.view;
  }
  if (o.has_addend && o.addend.data != target->data) level_functions().copy(*target, o.addend);

  Batch left = batch_of(*a), right = batch_of(*b), product = batch_of(*target);
  // One right operand for the whole batch, rows that follow each other and do not overlap: a single tall product.
  if (product.count > 1 && right.step == 0 && !integer && row_major && left.matrix.column_stride == 1 &&
      left.matrix.row_stride >= left.matrix.columns && product.matrix.row_stride >= product.matrix.columns &&
      left.step == left.matrix.rows * left.matrix.row_stride &&
      product.step == product.matrix.rows * product.matrix.row_stride) {
    left.matrix.rows *= product.count;
    product.matrix.rows *= product.count;
    product.count = 1;
  }
  if (integer) {
    integer_product(left, right, product, o.scale, o.has_addend);
  } else {
    const bool flip = target == &y && column_major;
    if (flip) {
      batched_gemm(compute, product.count, right.matrix.transposed(), right.step, left.matrix.transposed(), left.step,
                   product.matrix.transposed(), product.step, o.scale);
    } else {
      batched_gemm(compute, product.count, left.matrix, left.step, right.matrix, right.step, product.matrix,
                   product.step, o.scale);
    }
  }
  if (target != &y) level_functions().copy(y, *target);
}

// What the panels of a product are cut along.
enum class Along { kProducts, kRows, kColumns, kTerms };

struct Cut {
  Along along;
  i64 size, step;
};

// The products of a batch, or the longest side of one: panels that take about kPanelBytes when packed.
Cut cut_of(const Operands& o, i64 bytes) {
  const Matrix y = batch_of(o.y).matrix;
  const i64 products = batch_of(o.y).count, terms = batch_of(o.a).matrix.columns;
  const auto cut = [&](Along along, i64 size, i64 multiple) {
    const i64 step = larger<i64>(size * kPanelBytes / bytes / multiple, 1) * multiple;
    return Cut{along, size, smaller(step, size)};
  };
  if (products > 1) return cut(Along::kProducts, products, 1);
  if (terms >= y.rows && terms >= y.columns) return cut(Along::kTerms, terms, kPanelStep);
  return y.rows >= y.columns ? cut(Along::kRows, y.rows, kPanelStep) : cut(Along::kColumns, y.columns, kPanelStep);
}

// use(piece) for the panel from `first` on.
template <class Use>
void with_panel(const Operands& o, const Cut& cut, i64 first, const Use& use) {
  const i64 count = smaller(cut.step, cut.size - first);
  const int columns = o.y.rank - 1, rows = columns - 1;
  const auto whole = [](const TensorView& v) { return ViewRange(v, 0, 0, v.sizes[0]); };
  const auto cut_at = [&](const TensorView& v, int dim) { return ViewRange(v, dim, first, count); };
  const bool by_products = cut.along == Along::kProducts, by_terms = cut.along == Along::kTerms;
  const auto of_result = [&](const TensorView& v) {
    return by_terms ? whole(v) : cut_at(v, by_products ? 0 : cut.along == Along::kRows ? rows : columns);
  };
  const ViewRange y = of_result(o.y), addend = o.has_addend ? of_result(o.addend) : whole(o.y);
  const ViewRange a = cut.along == Along::kColumns ? whole(o.a)
                                                   : cut_at(o.a, by_products ? 0
                                                                 : by_terms  ? columns
                                                                             : rows);
  const ViewRange b = cut.along == Along::kRows ? whole(o.b) : cut_at(o.b, by_products ? 0 : by_terms ? rows : columns);
  use(Operands{y.view, a.view, b.view, addend.view, o.scale, o.has_addend});
}

// Operands of 16 bits, of which a panel at a time becomes float32.
void multiply_panels(KernelContext& context, const Operands& o) {
  constexpr Dtype kCompute = Dtype::kFloat32;
  const i64 bytes = packed_bytes(o, kCompute);
  if (bytes <= kPanelBytes) {
    Room room(context);
    return multiply(room, o, kCompute);
  }
  const Cut cut = cut_of(o, bytes);
  i64 most = 0;
  with_panel(o, cut, 0, [&](const Operands& piece) { most = packed_bytes(piece, kCompute); });
  Room room(context, most);
  Packed sum;
  const bool adds_up = cut.along == Along::kTerms;
  if (adds_up) pack(room, sum, o.y, kCompute, false);
  char* const empty = room.mark();
  for (i64 first = 0; first < cut.size; first += cut.step) {
    with_panel(o, cut, first, [&](Operands piece) {
      if (adds_up) piece.y = sum.view;
      if (adds_up && first > 0) {
        piece.addend = sum.view;
        piece.has_addend = true;
        piece.scale.beta = 1;
      }
      multiply(room, piece, kCompute);
    });
    room.back_to(empty);
  }
  if (adds_up) level_functions().copy(o.y, sum.view);
}

void matmul(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const MatmulAttributes kPlain;
  const auto& given = attributes ? *static_cast<const MatmulAttributes*>(attributes) : kPlain;
  const TensorView& y = at(outputs, 0);
  if (numel(y) == 0) return;
  const bool has_addend = inputs.size() > 2 && at(inputs, 2).rank >= 0 && given.beta != 0;
  if (product_of_bfloat16(context, y, inputs, has_addend, given)) return;
  const Operands operands{y,
                          at(inputs, 0),
                          at(inputs, 1),
                          has_addend ? at(inputs, 2) : TensorView{},
                          {given.alpha, has_addend ? given.beta : 0},
                          has_addend};
  const bool integer = lane_of(y.dtype) == Lane::kI64;
  if (!integer && bytes_of(y.dtype) == 2) return multiply_panels(context, operands);
  const Dtype compute = integer ? Dtype::kInt64 : y.dtype == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  Room room(context);
  multiply(room, operands, compute);
}

}  // namespace

void add_matmul(const KernelSink& sink) { sink.add(sink.host, "matmul", &matmul); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
