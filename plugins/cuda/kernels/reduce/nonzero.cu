// nonzero: the coordinates of the elements that are not zero, in row-major order. Blocks count theirs, the counts are
// added up, then blocks write behind those before them.
#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/team.cuh"

namespace tenon::cuda {
namespace {

struct Shape {
  int rank;
  i64 sizes[kMaxRank];
};

/// Bits that make an element: a float's sign alone does not.
u64 mask_of(Dtype dtype) {
  const u64 all = ~u64{0} >> (64 - 8 * size_of(dtype));
  return is_floating_point(dtype) ? all >> 1 : all;
}

/// How many of this block's elements up to this thread's are not zero, itself included; `all`: how many of all.
template <class T>
__device__ u32 rank_in_block(const Nest<1>& x, u64 mask, bool& is_one, u32& all) {
  __shared__ u32 shared[kWarps];
  const i64 i = first_item();
  is_one = false;
  if (i < x.total) {
    i64 at[1];
    x.locate(i, at);
    is_one = (*element<const T>(x.data[0], at[0]) & mask) != 0;
  }
  return team_scan(Team(kThreads), u32{is_one}, shared, all, [](u32 a, u32 b) { return a + b; });
}

template <class T>
__global__ void __launch_bounds__(kThreads) count_kernel(Nest<1> x, u64 mask, i64* counts) {
  bool is_one;
  u32 all;
  rank_in_block<T>(x, mask, is_one, all);
  if (threadIdx.x == 0) counts[blockIdx.x] = all;
}

/// counts[i] = those before it. One block.
__global__ void __launch_bounds__(kThreads) offsets_kernel(i64* counts, i64 blocks) {
  __shared__ i64 shared[kWarps];
  const Team team(kThreads);
  i64 before = 0;
  for (i64 first = 0; first < blocks; first += kThreads) {
    const i64 i = first + team.lane;
    const i64 own = i < blocks ? counts[i] : 0;
    i64 all;
    const i64 up_to = team_scan(team, own, shared, all, [](i64 a, i64 b) { return a + b; });
    if (i < blocks) counts[i] = before + up_to - own;
    before += all;
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) write_kernel(Nest<1> x, u64 mask, const i64* offsets, Shape shape,
                                                         char* indices, i64 row_bytes, i64 column_bytes, i64 room) {
  bool is_one;
  u32 all;
  const i64 row = offsets[blockIdx.x] + rank_in_block<T>(x, mask, is_one, all) - 1;
  if (!is_one || row >= room) return;
  i64 rest = first_item();
  char* to = indices + row * row_bytes;
  for (int d = shape.rank - 1; d >= 0; --d) {
    *element<i64>(to, d * column_bytes) = rest % shape.sizes[d];
    rest /= shape.sizes[d];
  }
}

void nonzero(KernelContext& context, Views outputs, Views inputs, const void*) {
  const TensorView &x = inputs[0], &indices = outputs[0];
  if (x.rank == 0 || indices.element_count() == 0) return;
  const Nest<1> elements = make_nest<1>({&x}, NestOrder::kRowMajor);
  Shape shape{x.rank, {}};
  for (int d = 0; d < x.rank; ++d) shape.sizes[d] = x.sizes[d];
  const unsigned blocks = blocks_for(elements.total);
  const auto counts = static_cast<i64*>(context.scratch(std::size_t{blocks} * sizeof(i64)));
  const u64 mask = mask_of(x.dtype);
  bits_of(x.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks, .block = kThreads}, count_kernel<T>, elements, mask, counts);
    launch(context, {.block = kThreads}, offsets_kernel, counts, i64{blocks});
    launch(context, {.grid = blocks, .block = kThreads}, write_kernel<T>, elements, mask, counts, shape,
           indices.as<char>(), indices.strides[0] * 8, indices.strides[1] * 8, indices.sizes[0]);
  });
}

}  // namespace

void add_nonzero(const KernelSink& sink) { sink.add(sink.host, "nonzero", &nonzero); }

}  // namespace tenon::cuda
