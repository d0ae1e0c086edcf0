// index, index_put, index_select, index_add, gather, scatter, embedding_backward.
//
// Reading: each element of y finds its place in self by the offset that its index says.
// Writing: each index, with the elements that belong to it, is a cell. Cells are sorted by where they write, so that
// those with one place lie in a run, in their order; then the last of a run writes, or one thread adds up the run. So
// the order is the one of the indices, whatever the device does first.
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>

#include "kernels/errors.cuh"
#include "kernels/launch.h"
#include "kernels/offsets.cuh"
#include "kernels/reduce/lines.cuh"
#include "kernels/reduce/sort_pairs.h"

#include <bit>
#include <limits>

namespace tenon::cuda {
namespace {

constexpr i64 kNowhere = -1;  ///< the offset that a wrong index gives, or one that is to be left out

/// What an index may be, and what it stands for.
struct Meaning {
  i64 size;            ///< of the dimension; -size and more where it wraps
  i64 stride;          ///< in bytes
  i64 number;          ///< of the dimension, for the error
  bool wraps = false;  ///< negative ones count from the end
  i64 left_out = std::numeric_limits<i64>::min();

  __device__ i64 offset(i64 index, const ErrorReport& report) const {
    if (index == left_out) return kNowhere;
    if (index >= size || index < (wraps ? -size : 0)) {
      report.raise(index, number, size);
      return kNowhere;
    }
    return (index < 0 ? index + size : index) * stride;
  }
};

/// Offsets of a cell each, an index tensor of i64 and, as the third operand's data pointer and offsets, what is added.
__global__ void __launch_bounds__(kThreads)
    offset_kernel(Nest<3> nest, Meaning meaning, bool first, ErrorReport report) {
  for (i64 i = first_item(); i < nest.total; i += all_items()) {
    i64 at[3];
    nest.locate(i, at);
    i64* const offset = element<i64>(nest.data[0], at[0]);
    const i64 own = meaning.offset(*element<const i64>(nest.data[1], at[1]), report);
    const i64 before = first ? at[2] : *offset;
    *offset = own == kNowhere || before == kNowhere ? kNowhere : before + own;
  }
}

/// y, index, and self without the dimension of the index.
template <class T>
__global__ void __launch_bounds__(kThreads) gather_kernel(Nest<3> nest, Meaning meaning, ErrorReport report) {
  for (i64 i = first_item(); i < nest.total; i += all_items()) {
    i64 at[3];
    nest.locate(i, at);
    const i64 offset = meaning.offset(*element<const i64>(nest.data[1], at[1]), report);
    *element<T>(nest.data[0], at[0]) = offset == kNowhere ? T(0) : *element<const T>(nest.data[2], at[2] + offset);
  }
}

/// A view of a tensor with strides of its own.
struct Spread {
  TensorView view;
  i64 sizes[2 * kMaxRank], strides[2 * kMaxRank];
  explicit Spread(const TensorView& of) : view(of) {
    view.rank = 0;
    view.sizes = sizes;
    view.strides = strides;
  }
  Spread(const Spread&) = delete;
  Spread& operator=(const Spread&) = delete;
  void add(i64 size, i64 stride) {
    sizes[view.rank] = size;
    strides[view.rank++] = stride;
  }
};

void gather(KernelContext& context, const TensorView& y, const TensorView& index, const TensorView& self,
            const Meaning& meaning, const ErrorText& text) {
  const Nest<3> nest = make_nest<3>({&y, &index, &self});
  bits_of(y.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(nest.total), .block = kThreads}, gather_kernel<T>, nest, meaning,
           errors(context, text));
  });
}

Meaning meaning_of(const TensorView& self, int dim) {
  const bool scalar = self.rank == 0;
  return {scalar ? 1 : self.sizes[dim], scalar ? 0 : self.strides[dim] * static_cast<i64>(size_of(self.dtype)), dim};
}

/// Offsets of cells into self, contiguous in scratch.
struct Cells {
  i64* offsets = nullptr;
  i64 count = 0;
};

/// `base`: of the indices' sizes, with strides of self: where a cell begins before the index is added.
void add_offsets(KernelContext& context, const Cells& cells, const TensorView& index, const TensorView& base,
                 const Meaning& meaning, bool first, const ErrorText& text) {
  Spread offsets(index);
  offsets.view.data = cells.offsets;
  i64 strides[kMaxRank], expected = 1;
  for (int d = index.rank - 1; d >= 0; --d) {
    strides[d] = expected;
    expected *= index.sizes[d];
  }
  for (int d = 0; d < index.rank; ++d) offsets.add(index.sizes[d], strides[d]);
  const Nest<3> nest = make_nest<3>({&offsets.view, &index, &base});
  launch(context, {.grid = blocks_for(nest.total), .block = kThreads}, offset_kernel, nest, meaning, first,
         errors(context, text));
}

Cells make_cells(KernelContext& context, i64 count) {
  return {static_cast<i64*>(context.scratch(static_cast<std::size_t>(count) * sizeof(i64))), count};
}

/// The cells of index and index_put: all index tensors have the same sizes.
Cells cells_of(KernelContext& context, const TensorView& self, Views indices, const IndexAttributes& a,
               const ErrorText& text) {
  const Cells cells = make_cells(context, indices[0].element_count());
  TensorView nothing = indices[0];
  nothing.dtype = self.dtype;
  constexpr i64 kZeros[kMaxRank] = {};
  nothing.strides = kZeros;
  for (int k = 0; k < static_cast<int>(indices.size()); ++k) {
    Meaning meaning = meaning_of(self, k);
    meaning.number = a.dims[k];
    meaning.wraps = true;
    add_offsets(context, cells, indices[static_cast<std::size_t>(k)], nothing, meaning, k == 0, text);
  }
  return cells;
}

const IndexAttributes& index_attributes(const void* attributes) {
  static const IndexAttributes kNone;
  return attributes ? *static_cast<const IndexAttributes*>(attributes) : kNone;
}

void index(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "index",
                                   "index %lld is out of bounds for dimension %lld with size %lld"};
  const TensorView &y = outputs[0], &self = inputs[0];
  const Views indices = inputs.subspan(1);
  const int k = static_cast<int>(indices.size()), lead = indices[0].rank;
  const Cells cells = cells_of(context, self, indices, index_attributes(attributes), kText);
  Spread offsets(indices[0]), rest(self);
  offsets.view.data = cells.offsets;
  i64 stride = cells.count;
  for (int d = 0; d < y.rank; ++d) {
    if (d < lead) stride /= y.sizes[d] > 0 ? y.sizes[d] : 1;
    offsets.add(y.sizes[d], d < lead ? stride : 0);
    rest.add(y.sizes[d], d < lead ? 0 : self.strides[d - lead + k]);
  }
  // What cells_of has found wrong is nowhere; no error is raised again.
  Meaning offset{std::numeric_limits<i64>::max(), 1, 0};
  offset.left_out = kNowhere;
  gather(context, y, offsets.view, rest.view, offset, kText);
}

constexpr const char* kOutOfSelf =
    "index out of range in self: index %lld is out of bounds for dimension %lld with size %lld";

void index_select(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "index_select", kOutOfSelf};
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  const TensorView &y = outputs[0], &self = inputs[0], &given = inputs[1];
  Spread along(given), rest(self);
  for (int d = 0; d < y.rank; ++d) {
    along.add(y.sizes[d], d == dim && given.rank > 0 ? given.strides[0] : 0);
    rest.add(y.sizes[d], d == dim ? 0 : self.strides[d]);
  }
  gather(context, y, along.view, rest.view, meaning_of(self, dim), kText);
}

constexpr const char* kOutOfBounds = "index %lld is out of bounds for dimension %lld with size %lld";

/// A view of `sizes`' sizes with x's strides, but for `dim`.
void spread_without(Spread& to, const TensorView& sizes, const TensorView& x, int dim) {
  for (int d = 0; d < sizes.rank; ++d) to.add(sizes.sizes[d], d == dim || x.rank == 0 ? 0 : x.strides[d]);
}

void gather(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kError, "gather", kOutOfBounds};
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  const TensorView &y = outputs[0], &self = inputs[0], &given = inputs[1];
  Spread rest(self);
  spread_without(rest, given, self, dim);
  gather(context, y, given, rest.view, meaning_of(self, dim), kText);
}

// What is written in order.

/// Sorted cells, what each brings along, and the elements of a cell.
struct Writes {
  Pairs sorted;   ///< keys: offset in elements; values: number of the cell
  u64 end;        ///< no cell is there: the key of those that are nowhere
  Nest<1> cells;  ///< where the values of a cell begin, by its number
  Nest<2> block;  ///< elements of a cell: in self, in the values
};

template <class T>
__global__ void __launch_bounds__(kThreads) assign_kernel(Writes w) {
  for (i64 i = first_item(); i < w.sorted.count * w.block.total; i += all_items()) {
    const i64 s = i / w.block.total;
    const u64 key = w.sorted.keys[s];
    if (key == w.end || (s + 1 < w.sorted.count && w.sorted.keys[s + 1] == key)) continue;
    i64 from[1], at[2];
    w.cells.locate(w.sorted.values[s], from);
    w.block.locate(i % w.block.total, at);
    *element<T>(w.block.data[0], static_cast<i64>(key * sizeof(T)) + at[0]) =
        *element<const T>(w.block.data[1], from[0] + at[1]);
  }
}

/// self += alpha * values; by_frequency: divided by the length of the run.
template <class T>
__global__ void __launch_bounds__(kThreads) accumulate_kernel(Writes w, double alpha, bool by_frequency) {
  using A = Compute<T>;
  for (i64 i = first_item(); i < w.sorted.count * w.block.total; i += all_items()) {
    const i64 first = i / w.block.total;
    const u64 key = w.sorted.keys[first];
    if (key == w.end || (first > 0 && w.sorted.keys[first - 1] == key)) continue;
    i64 end = first + 1;
    if (by_frequency) {
      while (end < w.sorted.count && w.sorted.keys[end] == key) ++end;
      alpha = 1.0 / static_cast<double>(end - first);
    }
    const A scale = static_cast<A>(alpha);
    i64 from[1], at[2];
    w.block.locate(i % w.block.total, at);
    T* const to = element<T>(w.block.data[0], static_cast<i64>(key * sizeof(T)) + at[0]);
    A sum = load_as<T>(*to);
    for (i64 s = first; s < w.sorted.count && w.sorted.keys[s] == key; ++s) {
      w.cells.locate(w.sorted.values[s], from);
      sum += scale * load_as<T>(*element<const T>(w.block.data[1], from[0] + at[1]));
    }
    *to = store_as<T>(sum);
  }
}

__global__ void __launch_bounds__(kThreads) cell_keys_kernel(Cells cells, Pairs pairs, i64 element_bytes, u64 end) {
  for (i64 i = first_item(); i < pairs.count; i += all_items()) {
    const i64 offset = cells.offsets[i];
    pairs.keys[i] = offset == kNowhere ? end : static_cast<u64>(offset / element_bytes);
    pairs.values[i] = i;
  }
}

/// values: a view whose first dimensions are those of the cells, whose others are `self_block`'s.
Writes make_writes(KernelContext& context, const TensorView& self, const Cells& cells, const TensorView& cell_values,
                   const TensorView& self_block, const TensorView& value_block) {
  i64 end = 1;  // one more than the greatest offset
  for (int d = 0; d < self.rank; ++d) end += (self.sizes[d] - 1) * self.strides[d];
  Writes w;
  w.end = static_cast<u64>(end);
  w.cells = make_nest<1>({&cell_values}, NestOrder::kRowMajor);
  w.block = make_nest<2>({&self_block, &value_block});
  w.sorted = make_pairs(context, cells.count);
  launch(context, {.grid = blocks_for(cells.count), .block = kThreads}, cell_keys_kernel, cells, w.sorted,
         static_cast<i64>(size_of(self.dtype)), w.end);
  w.sorted = sort_pairs(context, w.sorted, static_cast<int>(std::bit_width(w.end)));
  return w;
}

LaunchShape shape_of(const Writes& w) {
  return {.grid = blocks_for(w.sorted.count * w.block.total), .block = kThreads};
}

void assign(KernelContext& context, Dtype dtype, const Writes& w) {
  bits_of(dtype, [&]<class T>(Type<T>) { launch(context, shape_of(w), assign_kernel<T>, w); });
}

void accumulate(KernelContext& context, Dtype dtype, const Writes& w, double alpha, bool by_frequency = false) {
  any_dtype(dtype,
            [&]<class T>(Type<T>) { launch(context, shape_of(w), accumulate_kernel<T>, w, alpha, by_frequency); });
}

void index_put(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "index_put", kOutOfBounds};
  const auto& a = index_attributes(attributes);
  const TensorView &self = outputs[0], &values = inputs[0];
  const Views indices = inputs.subspan(1);
  const int k = static_cast<int>(indices.size()), lead = indices[0].rank;
  // Values broadcast to I + self.sizes[k:].
  Spread cell(values), block(values), self_block(self);
  const int full = lead + self.rank - k;
  i64 block_count = 1;
  for (int d = 0; d < full; ++d) {
    const i64 size = d < lead ? indices[0].sizes[d] : self.sizes[k + d - lead];
    const int own = d - (full - values.rank);
    const i64 stride = own < 0 || (values.sizes[own] == 1 && size != 1) ? 0 : values.strides[own];
    (d < lead ? cell : block).add(size, stride);
    if (d < lead) continue;
    self_block.add(size, self.strides[k + d - lead]);
    block_count *= size;
  }
  const Cells cells = cells_of(context, self, indices, a, kText);
  if (block_count == 0 || cells.count == 0) return;
  const Writes w = make_writes(context, self, cells, cell.view, self_block.view, block.view);
  a.accumulate ? accumulate(context, self.dtype, w, 1) : assign(context, self.dtype, w);
}

void index_add(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "index_add", kOutOfSelf};
  const auto& a = *static_cast<const IndexAddAttributes*>(attributes);
  const TensorView &self = outputs[0], &given = inputs[0], &source = inputs[1];
  const Cells cells = make_cells(context, given.element_count());
  Spread nothing(self), cell(source);
  for (int d = 0; d < given.rank; ++d) {
    nothing.add(given.sizes[d], 0);
    cell.add(given.sizes[d], source.rank == 0 ? 0 : source.strides[a.dim]);
  }
  add_offsets(context, cells, given, nothing.view, meaning_of(self, a.dim), true, kText);
  if (cells.count == 0 || source.element_count() == 0) return;
  const auto others = [&](int d) { return d != a.dim; };
  const PartView self_block(self, others), block(source, others);
  accumulate(context, self.dtype, make_writes(context, self, cells, cell.view, self_block.view(), block.view()),
             a.alpha);
}

void scatter(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kError, "scatter", kOutOfBounds};
  const auto& a = *static_cast<const ScatterAttributes*>(attributes);
  const TensorView &self = outputs[0], &given = inputs[0], &source = inputs[1];
  if (given.element_count() == 0) return;
  Spread base(self), cell(source), self_block(self), block(source);
  spread_without(base, given, self, a.dim);
  spread_without(cell, given, source, -1);
  const Cells cells = make_cells(context, given.element_count());
  add_offsets(context, cells, given, base.view, meaning_of(self, a.dim), true, kText);
  const Writes w = make_writes(context, self, cells, cell.view, self_block.view, block.view);
  a.add ? accumulate(context, self.dtype, w, 1) : assign(context, self.dtype, w);
}

template <class T>
__global__ void __launch_bounds__(kThreads) zero_kernel(Nest<1> nest) {
  for (i64 i = first_item(); i < nest.total; i += all_items()) {
    i64 at[1];
    nest.locate(i, at);
    *element<T>(nest.data[0], at[0]) = T(0);
  }
}

void embedding_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static constexpr ErrorText kText{ErrorText::Kind::kIndexError, "embedding_backward", kOutOfSelf};
  const auto& a = *static_cast<const EmbeddingBackwardAttributes*>(attributes);
  const TensorView &dw = outputs[0], &dy = inputs[0], &given = inputs[1];
  const Nest<1> all = make_nest<1>({&dw});
  bits_of(dw.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(all.total), .block = kThreads}, zero_kernel<T>, all);
  });
  const Cells cells = make_cells(context, given.element_count());
  Spread nothing(dw), cell(dy);
  for (int d = 0; d < given.rank; ++d) {
    nothing.add(given.sizes[d], 0);
    cell.add(given.sizes[d], dy.strides[0]);
  }
  Meaning meaning = meaning_of(dw, 0);
  if (a.padding_index >= 0) meaning.left_out = a.padding_index;
  add_offsets(context, cells, given, nothing.view, meaning, true, kText);
  if (cells.count == 0 || all.total == 0) return;
  const auto columns = [](int d) { return d == 1; };
  const PartView self_block(dw, columns), block(dy, columns);
  const Writes w = make_writes(context, dw, cells, cell.view, self_block.view(), block.view());
  accumulate(context, dw.dtype, w, 1, a.scale_by_frequency);
}

}  // namespace

void add_indexing(const KernelSink& sink) {
  sink.add(sink.host, "index", &index);
  sink.add(sink.host, "index_put", &index_put);
  sink.add(sink.host, "index_select", &index_select);
  sink.add(sink.host, "index_add", &index_add);
  sink.add(sink.host, "gather", &gather);
  sink.add(sink.host, "scatter", &scatter);
  sink.add(sink.host, "embedding_backward", &embedding_backward);
}

}  // namespace tenon::cuda
