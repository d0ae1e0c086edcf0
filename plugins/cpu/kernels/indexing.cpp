// index, index_put, index_select, index_add, gather, scatter, embedding_backward.
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/indexing.h>
#include <tenon/kernel/attributes/reduction.h>

#include <string>

#include "kernels/reduce/lines.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

// Adds elements of any dtype: by lanes, one row at a time.
struct Adder {
  Lane lane;
  Load load;
  Store store;
  explicit Adder(Dtype dtype)
      : lane(lane_of(dtype)), load(load_function(dtype, lane)), store(store_function(dtype, lane)) {}
  // to[i] += scale * from[i] for n elements.
  void add(char* to, i64 to_stride, const char* from, i64 from_stride, i64 n, double scale) const {
    alignas(64) char a[kBlock * 8], b[kBlock * 8];
    for (i64 i = 0; i < n; i += kBlock) {
      const i64 count = smaller(kBlock, n - i);
      load(a, to + i * to_stride, to_stride, count);
      load(b, from + i * from_stride, from_stride, count);
      if (lane == Lane::kF32) sum<float>(a, b, count, static_cast<float>(scale));
      if (lane == Lane::kF64) sum<double>(a, b, count, scale);
      if (lane == Lane::kI64) sum<u64>(a, b, count, static_cast<u64>(static_cast<i64>(scale)));  // integers wrap
      store(to + i * to_stride, to_stride, a, count);
    }
  }
  template <class T>
  static void sum(char* a, const char* b, i64 n, T scale) {
    T* x = reinterpret_cast<T*>(a);
    const T* y = reinterpret_cast<const T*>(b);
    for (i64 i = 0; i < n; ++i) x[i] += scale * y[i];
  }
};

void move_elements(char* to, i64 to_stride, const char* from, i64 from_stride, i64 n, i64 bytes) {
  if (to_stride == bytes && from_stride == bytes) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(n * bytes));
    return;
  }
  for (i64 i = 0; i < n; ++i)
    __builtin_memcpy(to + i * to_stride, from + i * from_stride, static_cast<std::size_t>(bytes));
}

// The rest of a view's dimensions from `first` on as collapsed rows of the inner dimension.
struct Block {
  int rank = 0;
  i64 sizes[kMaxRank], a[kMaxRank], b[kMaxRank];  // strides in bytes of the two operands
  i64 rows = 1, inner = 1, inner_a = 0, inner_b = 0;

  Block(const TensorView& x, int first_x, const TensorView& y, int first_y) {
    const i64 bytes = bytes_of(x.dtype), bytes_y = bytes_of(y.dtype);
    for (int d = 0; d + first_x < x.rank; ++d) {
      const i64 size = x.sizes[first_x + d];
      const i64 sx = x.strides[first_x + d] * bytes, sy = y.strides[first_y + d] * bytes_y;
      if (rank > 0 && a[rank - 1] == sx * size && b[rank - 1] == sy * size) {
        sizes[rank - 1] *= size;
        a[rank - 1] = sx;
        b[rank - 1] = sy;
      } else {
        sizes[rank] = size;
        a[rank] = sx;
        b[rank++] = sy;
      }
    }
    if (rank > 0) {
      inner = sizes[rank - 1];
      inner_a = a[rank - 1];
      inner_b = b[rank - 1];
      for (int d = 0; d < rank - 1; ++d) rows *= sizes[d];
    }
  }
  i64 count() const { return rows * inner; }
  template <class F>
  void each_row(char* x, char* y, const F& f) const {
    for (i64 r = 0; r < rows; ++r) {
      i64 rest = r, ox = 0, oy = 0;
      for (int d = rank - 2; d >= 0; --d) {
        ox += rest % sizes[d] * a[d];
        oy += rest % sizes[d] * b[d];
        rest /= sizes[d];
      }
      f(x + ox, y + oy);
    }
  }
};

// The index tensors of index and index_put: all of the same sizes.
struct Indices {
  const TensorView* views;
  int count;
  int rank;
  const i64* sizes;
  i64 total = 1;

  Indices(const TensorView* first, int k) : views(first), count(k), rank(first[0].rank), sizes(first[0].sizes) {
    for (int d = 0; d < rank; ++d) total *= sizes[d];
  }
  // Offset in elements into `self` of index position i.
  i64 offset(i64 i, const TensorView& self, const IndexAttributes& a) const {
    i64 where[kMaxRank];
    for (int d = rank - 1; d >= 0; --d) {
      where[d] = i % sizes[d];
      i /= sizes[d];
    }
    i64 sum = 0;
    for (int k = 0; k < count; ++k) {
      i64 at = 0;
      for (int d = 0; d < rank; ++d) at += where[d] * views[k].strides[d];
      const i64 given = static_cast<const i64*>(views[k].data)[at];
      const i64 size = self.sizes[k];
      if (given < -size || given >= size) {
        throw IndexError("index " + std::to_string(given) + " is out of bounds for dimension " +
                         std::to_string(a.dims[k]) + " with size " + std::to_string(size));
      }
      sum += (given < 0 ? given + size : given) * self.strides[k];
    }
    return sum;
  }

  /// All offsets, before a parallel part: no error may come from inside one.
  const i64* offsets(KernelContext& context, const TensorView& self, const IndexAttributes& a) const {
    i64* const all = static_cast<i64*>(context.scratch(static_cast<std::size_t>(total) * 8));
    for (i64 i = 0; i < total; ++i) all[i] = offset(i, self, a);
    return all;
  }
};

void index(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const IndexAttributes kNone;
  const auto& a = attributes ? *static_cast<const IndexAttributes*>(attributes) : kNone;
  const TensorView &y = at(outputs, 0), &self = at(inputs, 0);
  const int k = static_cast<int>(inputs.size()) - 1;
  const Indices indices(&at(inputs, 1), k);
  const i64* const offsets = indices.offsets(context, self, a);
  if (numel(y) == 0) return;
  const i64 bytes = bytes_of(self.dtype);
  const Block block(self, k, y, indices.rank);
  TensorView lead = y;
  lead.rank = indices.rank;
  parallel(indices.total, kGrain / larger<i64>(1, block.count()) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      i64 rest = i, to = 0;
      for (int d = lead.rank - 1; d >= 0; --d) {
        to += rest % lead.sizes[d] * lead.strides[d];
        rest /= lead.sizes[d];
      }
      block.each_row(
          static_cast<char*>(self.data) + offsets[i] * bytes, static_cast<char*>(y.data) + to * bytes,
          [&](char* from, char* into) { move_elements(into, block.inner_b, from, block.inner_a, block.inner, bytes); });
    }
  });
}

void index_put(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const IndexAttributes kNone;
  const auto& a = attributes ? *static_cast<const IndexAttributes*>(attributes) : kNone;
  const TensorView &self = at(outputs, 0), &values = at(inputs, 0);
  const int k = static_cast<int>(inputs.size()) - 1;
  const Indices indices(&at(inputs, 1), k);
  const i64* const offsets = indices.offsets(context, self, a);
  // Values broadcast to I + self.sizes[k:]: missing and size-1 dimensions get stride 0.
  const int full = indices.rank + self.rank - k;
  i64 strides[2 * kMaxRank], sizes[2 * kMaxRank];
  for (int d = 0; d < full; ++d) {
    const int own = d - (full - values.rank);
    sizes[d] = d < indices.rank ? indices.sizes[d] : self.sizes[k + d - indices.rank];
    strides[d] = own < 0 || (values.sizes[own] == 1 && sizes[d] != 1) ? 0 : values.strides[own];
  }
  TensorView spread = values;
  spread.rank = full;
  spread.sizes = sizes;
  spread.strides = strides;
  const Block block(self, k, spread, indices.rank);
  const i64 bytes = bytes_of(self.dtype);
  const Adder adder(self.dtype);
  if (block.count() == 0) return;
  for (i64 i = 0; i < indices.total; ++i) {
    i64 rest = i, from = 0;
    for (int d = indices.rank - 1; d >= 0; --d) {
      from += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    block.each_row(static_cast<char*>(self.data) + offsets[i] * bytes, static_cast<char*>(spread.data) + from * bytes,
                   [&](char* into, char* value) {
                     if (a.accumulate) {
                       adder.add(into, block.inner_a, value, block.inner_b, block.inner, 1);
                     } else {
                       move_elements(into, block.inner_a, value, block.inner_b, block.inner, bytes);
                     }
                   });
  }
}

// A view with dimension `dim` taken out, and what it was.
struct Slices {
  TensorView view;
  i64 sizes[kMaxRank], strides[kMaxRank];
  i64 size = 1, stride = 0;  // of dim, in elements
  Slices(const TensorView& x, int dim) : view(x) {
    view.sizes = sizes;
    view.strides = strides;
    view.rank = 0;
    for (int d = 0; d < x.rank; ++d) {
      if (d == dim) {
        size = x.sizes[d];
        stride = x.strides[d];
        continue;
      }
      sizes[view.rank] = x.sizes[d];
      strides[view.rank++] = x.strides[d];
    }
  }
};

i64 index_at(const TensorView& index, i64 i) {
  return static_cast<const i64*>(index.data)[index.rank == 0 ? 0 : i * index.strides[0]];
}

[[noreturn]] void out_of_range(i64 index, int dim, i64 size) {
  throw IndexError("index out of range in self: index " + std::to_string(index) + " is out of bounds for dimension " +
                   std::to_string(dim) + " with size " + std::to_string(size));
}

void index_select(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  const TensorView &y = at(outputs, 0), &self = at(inputs, 0), &index = at(inputs, 1);
  const i64 n = numel(index);
  const i64 size = self.rank == 0 ? 1 : self.sizes[dim];
  for (i64 i = 0; i < n; ++i) {
    const i64 at = index_at(index, i);
    if (at < 0 || at >= size) out_of_range(at, dim, size);
  }
  if (numel(y) == 0) return;
  const Slices from(self, dim), to(y, dim);
  const Block block(from.view, 0, to.view, 0);
  const i64 bytes = bytes_of(self.dtype);
  parallel(n, kGrain / larger<i64>(1, block.count()) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      block.each_row(static_cast<char*>(self.data) + index_at(index, i) * from.stride * bytes,
                     static_cast<char*>(y.data) + i * to.stride * bytes,
                     [&](char* a, char* b) { move_elements(b, block.inner_b, a, block.inner_a, block.inner, bytes); });
    }
  });
}

void index_add(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const IndexAddAttributes*>(attributes);
  const TensorView &self = at(outputs, 0), &index = at(inputs, 0), &source = at(inputs, 1);
  const i64 n = numel(index);
  const i64 size = self.rank == 0 ? 1 : self.sizes[a.dim];
  for (i64 i = 0; i < n; ++i) {
    const i64 at = index_at(index, i);
    if (at < 0 || at >= size) out_of_range(at, a.dim, size);
  }
  if (numel(source) == 0) return;
  const Slices to(self, a.dim), from(source, a.dim);
  const Block block(to.view, 0, from.view, 0);
  const i64 bytes = bytes_of(self.dtype);
  const Adder adder(self.dtype);
  for (i64 i = 0; i < n; ++i) {
    block.each_row(static_cast<char*>(self.data) + index_at(index, i) * to.stride * bytes,
                   static_cast<char*>(source.data) + i * from.stride * bytes, [&](char* into, char* value) {
                     adder.add(into, block.inner_a, value, block.inner_b, block.inner, a.alpha);
                   });
  }
}

// Walks index's elements: visit(offset in `other` without dim, offset in `table` without dim, index value, position
// along dim).
template <class F>
void each_index(const TensorView& index, const TensorView& other, const TensorView& table, int dim, const F& visit) {
  i64 where[kMaxRank] = {};
  const i64 total = numel(index);
  const i64 limit = table.rank == 0 ? 1 : table.sizes[dim];
  for (i64 i = 0; i < total; ++i) {
    i64 at = 0, in_other = 0, in_table = 0;
    for (int d = 0; d < index.rank; ++d) {
      at += where[d] * index.strides[d];
      in_other += where[d] * other.strides[d];
      if (d != dim) in_table += where[d] * table.strides[d];
    }
    const i64 value = static_cast<const i64*>(index.data)[at];
    if (value < 0 || value >= limit) {
      throw Error("index " + std::to_string(value) + " is out of bounds for dimension " + std::to_string(dim) +
                  " with size " + std::to_string(limit));
    }
    if (table.rank > 0) in_table += value * table.strides[dim];
    visit(in_other, in_table);
    for (int d = index.rank - 1; d >= 0; --d) {
      if (++where[d] < index.sizes[d]) break;
      where[d] = 0;
    }
  }
}

void gather(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const int dim = static_cast<const DimAttributes*>(attributes)->dim;
  const TensorView &y = at(outputs, 0), &self = at(inputs, 0), &index = at(inputs, 1);
  const i64 bytes = bytes_of(self.dtype);
  each_index(index, y, self, dim, [&](i64 to, i64 from) {
    __builtin_memcpy(static_cast<char*>(y.data) + to * bytes, static_cast<char*>(self.data) + from * bytes,
                     static_cast<std::size_t>(bytes));
  });
}

void scatter(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const ScatterAttributes*>(attributes);
  const TensorView &self = at(outputs, 0), &index = at(inputs, 0), &source = at(inputs, 1);
  const i64 bytes = bytes_of(self.dtype);
  const Adder adder(self.dtype);
  each_index(index, source, self, a.dim, [&](i64 from, i64 to) {
    char* into = static_cast<char*>(self.data) + to * bytes;
    const char* value = static_cast<char*>(source.data) + from * bytes;
    if (a.add) {
      adder.add(into, bytes, value, bytes, 1, 1);
    } else {
      __builtin_memcpy(into, value, static_cast<std::size_t>(bytes));
    }
  });
}

void embedding_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const EmbeddingBackwardAttributes*>(attributes);
  const TensorView &dw = at(outputs, 0), &dy = at(inputs, 0), &index = at(inputs, 1);
  const i64 bytes = bytes_of(dw.dtype);
  const i64 vocabulary = dw.sizes[0], width = dw.sizes[1], n = numel(index);
  for (i64 r = 0; r < vocabulary; ++r) {
    char* row = static_cast<char*>(dw.data) + r * dw.strides[0] * bytes;
    for (i64 c = 0; c < width; ++c)
      __builtin_memset(row + c * dw.strides[1] * bytes, 0, static_cast<std::size_t>(bytes));
  }
  i64* frequency = nullptr;
  if (a.scale_by_frequency) {
    frequency = static_cast<i64*>(context.scratch(static_cast<std::size_t>(vocabulary) * 8));
    for (i64 r = 0; r < vocabulary; ++r) frequency[r] = 0;
  }
  for (i64 i = 0; i < n; ++i) {
    const i64 at = index_at(index, i);
    if (at < 0 || at >= vocabulary) out_of_range(at, 0, vocabulary);
    if (frequency) ++frequency[at];
  }
  const Adder adder(dw.dtype);
  // Each thread owns a range of columns and goes through the rows in order: the sum's order is always the same.
  parallel(width, larger<i64>(16, kGrain / larger<i64>(1, n)), 16, [&](i64 begin, i64 end) {
    for (i64 i = 0; i < n; ++i) {
      const i64 at = index_at(index, i);
      if (at == a.padding_index) continue;
      adder.add(static_cast<char*>(dw.data) + (at * dw.strides[0] + begin * dw.strides[1]) * bytes,
                dw.strides[1] * bytes,
                static_cast<const char*>(dy.data) + (i * dy.strides[0] + begin * dy.strides[1]) * bytes,
                dy.strides[1] * bytes, end - begin, frequency ? 1.0 / static_cast<double>(frequency[at]) : 1);
    }
  });
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

}  // namespace tenon::cpu::TENON_CPU_LEVEL
