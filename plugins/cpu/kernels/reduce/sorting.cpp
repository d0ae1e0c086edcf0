// sort, topk, nonzero, count_nonzero_all.
#include <tenon/kernel/attributes/reduction.h>

#include <algorithm>

#include "kernels/reduce/lines.h"
#include "kernels/register.h"
#include "thread_pool.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

template <class T>
struct Element {
  T value;
  i64 index;
};

// nan after everything when ascending, before everything when descending; equal values in order of their index, so that
// a sort that is not stable by itself (and needs no memory) is.
template <class T, bool descending>
bool before(const Element<T>& a, const Element<T>& b) {
  const bool nan_a = a.value != a.value, nan_b = b.value != b.value;
  if (nan_a || nan_b) {
    if (nan_a != nan_b) return descending ? nan_a : nan_b;
    return a.index < b.index;
  }
  if (a.value != b.value) return descending ? a.value > b.value : a.value < b.value;
  return a.index < b.index;
}

template <class T, bool descending>
void run(KernelContext& context, Views outputs, const TensorView& x, int dim, i64 k, Lane lane) {
  const TensorView &values = at(outputs, 0), &indices = at(outputs, 1);
  const TensorView* views[] = {&values, &indices, &x};
  Lines lines;
  make_lines(lines, views, 3, dim);
  const i64 n = lines.length[2];
  if (lines.count <= 0 || k <= 0) return;
  const Load load = load_function(x.dtype, lane);
  const Store store = store_function(values.dtype, lane);
  const i64 parts = std::max<i64>(1, std::min<i64>({lines.count, thread_count(), lines.count * n / 4096}));
  const i64 chunk = (lines.count + parts - 1) / parts;
  auto* rooms = static_cast<Element<T>*>(context.scratch(static_cast<std::size_t>(parts * n) * sizeof(Element<T>)));
  parallel(parts, parts > 1 ? 1 : 2, 1, [&](i64 first, i64 last) {
    for (i64 part = first; part < last; ++part) {
      Element<T>* room = rooms + part * n;
      for (i64 line = part * chunk; line < std::min((part + 1) * chunk, lines.count); ++line) {
        char* p[kMaxOperands];
        lines.pointers(line, p);
        for (i64 i = 0; i < n; ++i) {
          load(&room[i].value, p[2] + i * lines.stride[2], 0, 1);
          room[i].index = i;
        }
        if (k < n) {
          std::partial_sort(room, room + k, room + n, &before<T, descending>);
        } else {
          std::sort(room, room + n, &before<T, descending>);
        }
        for (i64 i = 0; i < k; ++i) {
          store(p[0] + i * lines.stride[0], 0, &room[i].value, 1);
          *reinterpret_cast<i64*>(p[1] + i * lines.stride[1]) = room[i].index;
        }
      }
    }
  });
}

void dispatch(KernelContext& context, Views outputs, const TensorView& x, int dim, i64 k, bool descending) {
  const Lane lane = lane_of(x.dtype);
  if (lane == Lane::kF32) (descending ? &run<float, true> : &run<float, false>)(context, outputs, x, dim, k, lane);
  if (lane == Lane::kF64) (descending ? &run<double, true> : &run<double, false>)(context, outputs, x, dim, k, lane);
  if (lane == Lane::kI64) (descending ? &run<i64, true> : &run<i64, false>)(context, outputs, x, dim, k, lane);
}

void sort(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const SortAttributes*>(attributes);
  const TensorView& x = at(inputs, 0);
  dispatch(context, outputs, x, a.dim, x.rank == 0 ? 1 : x.sizes[a.dim], a.descending);
}

void topk(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const TopkAttributes*>(attributes);
  const TensorView& x = at(inputs, 0);
  const i64 n = x.rank == 0 ? 1 : x.sizes[a.dim];
  if (a.k > n)
    fail("topk: k (%lld) is larger than dimension %d, which has %lld elements", static_cast<long long>(a.k), a.dim,
         static_cast<long long>(n));
  dispatch(context, outputs, x, a.dim, a.k, a.largest);
}

// Calls visit(row-major index, element address) for each element.
template <class F>
void each_element(const TensorView& x, const F& visit) {
  const i64 bytes = bytes_of(x.dtype);
  const i64 total = numel(x);
  i64 where[kMaxRank] = {};
  const char* p = static_cast<const char*>(x.data);
  for (i64 i = 0; i < total; ++i) {
    visit(where, p);
    for (int d = x.rank - 1; d >= 0; --d) {
      p += x.strides[d] * bytes;
      if (++where[d] < x.sizes[d]) break;
      p -= x.sizes[d] * x.strides[d] * bytes;
      where[d] = 0;
    }
  }
}

void count_nonzero_all(KernelContext&, Views outputs, Views inputs, const void*) {
  const TensorView& x = at(inputs, 0);
  const Load load = load_function(x.dtype, Lane::kF64);
  i64 count = 0;
  each_element(x, [&](const i64*, const char* p) {
    double value;
    load(&value, p, 0, 1);
    count += value != 0;
  });
  *static_cast<i64*>(at(outputs, 0).data) = count;
}

void nonzero(KernelContext&, Views outputs, Views inputs, const void*) {
  const TensorView &x = at(inputs, 0), &indices = at(outputs, 0);
  const Load load = load_function(x.dtype, Lane::kF64);
  i64 row = 0;
  if (numel(indices) == 0) return;
  each_element(x, [&](const i64* where, const char* p) {
    double value;
    load(&value, p, 0, 1);
    if (value == 0) return;
    i64* to = static_cast<i64*>(indices.data) + row++ * indices.strides[0];
    for (int d = 0; d < x.rank; ++d) to[d * indices.strides[1]] = where[d];
  });
}

}  // namespace

void add_sorting(const KernelSink& sink) {
  sink.add(sink.host, "sort", &sort);
  sink.add(sink.host, "topk", &topk);
  sink.add(sink.host, "count_nonzero_all", &count_nonzero_all);
  sink.add(sink.host, "nonzero", &nonzero);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
