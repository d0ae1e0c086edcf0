// tril, triu: one triangle of each matrix, zeros in the other.
#include <tenon/kernel/attributes/indexing.h>

#include "kernels/launch.h"
#include "kernels/offsets.cuh"

namespace tenon::cuda {
namespace {

/// y, x in row-major order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    triangle_kernel(Nest<2> nest, i64 rows, i64 columns, i64 diagonal, bool lower) {
  for (i64 i = first_item(); i < nest.total; i += all_items()) {
    i64 at[2];
    nest.locate(i, at);
    const i64 above = i % columns - i / columns % rows;  // the diagonal that the element is on
    const bool keep = lower ? above <= diagonal : above >= diagonal;
    *element<T>(nest.data[0], at[0]) = keep ? *element<const T>(nest.data[1], at[1]) : T(0);
  }
}

template <bool lower>
void triangle(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const i64 diagonal = static_cast<const TriangleAttributes*>(attributes)->diagonal;
  const TensorView &y = outputs[0], &x = inputs[0];
  const i64 rows = y.sizes[y.rank - 2], columns = y.sizes[y.rank - 1];
  const Nest<2> nest = make_nest<2>({&y, &x}, NestOrder::kRowMajor);
  bits_of(y.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(nest.total), .block = kThreads}, triangle_kernel<T>, nest, rows, columns,
           diagonal, lower);
  });
}

}  // namespace

void add_triangles(const KernelSink& sink) {
  sink.add(sink.host, "tril", &triangle<true>);
  sink.add(sink.host, "triu", &triangle<false>);
}

}  // namespace tenon::cuda
