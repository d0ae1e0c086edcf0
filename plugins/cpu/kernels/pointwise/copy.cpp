// copy and fill: any strides, any two dtypes.
#include <tenon/kernel/attributes/pointwise.h>

#include "kernels/pointwise/engine.h"
#include "kernels/register.h"
#include "kernels/square.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 16384;
constexpr i64 kTile = 32;
constexpr i64 kShortRow = 32;  // a call for each of shorter rows costs more than gathering them

template <class T>
void copy_row(char* destination, const char* source, i64 to, i64 from, i64 n) {
  constexpr i64 kBytes = sizeof(T);
  if (to == kBytes && from == kBytes) {
    __builtin_memcpy(destination, source, static_cast<std::size_t>(n) * sizeof(T));
  } else if (to == kBytes && from == 0) {
    const T value = *reinterpret_cast<const T*>(source);
    T* out = reinterpret_cast<T*>(destination);
    for (i64 i = 0; i < n; ++i) out[i] = value;
  } else if (to == kBytes) {
    T* __restrict out = reinterpret_cast<T*>(destination);
    for (i64 i = 0; i < n; ++i) out[i] = *reinterpret_cast<const T*>(source + i * from);
  } else {
    for (i64 i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(destination + i * to) = *reinterpret_cast<const T*>(source + i * from);
    }
  }
}

// The inner two dimensions are a transposition: small tiles keep both sides in the cache. Where both sides lie in rows,
// squares are turned in registers: rows that are a large power of two apart share a few places of the cache, which do
// not keep a tile.
template <class T>
void copy_tiles(char* destination, const char* source, const Nest& nest, int rows_dim, i64 row_begin, i64 row_end) {
  constexpr i64 kBytes = sizeof(T);
  const int inner = nest.rank - 1;
  const i64 columns = nest.sizes[inner];
  const i64 to_row = nest.strides[0][rows_dim], from_row = nest.strides[1][rows_dim];
  const i64 to = nest.strides[0][inner], from = nest.strides[1][inner];
  const bool in_rows = to == kBytes && from_row == kBytes;
  const auto rectangle = [&](i64 r0, i64 r1, i64 c0, i64 c1) {
    for (i64 r = r0; r < r1; ++r)
      copy_row<T>(destination + r * to_row + c0 * to, source + r * from_row + c0 * from, to, from, c1 - c0);
  };
  for (i64 r0 = row_begin; r0 < row_end; r0 += kTile) {
    const i64 r1 = smaller(r0 + kTile, row_end);
    for (i64 c0 = 0; c0 < columns; c0 += kTile) {
      const i64 c1 = smaller(c0 + kTile, columns);
      i64 r = r0, c = c0;
      if constexpr (kBytes == 2 || kBytes == 4) {  // of which there are squares
        for (; in_rows && c + kSide <= c1; c += kSide) {
          for (r = r0; r + kSide <= r1; r += kSide) {
            transpose_square(reinterpret_cast<T*>(destination + r * to_row + c * to), to_row / kBytes, kSide,
                             reinterpret_cast<const T*>(source + r * from_row + c * from), from / kBytes, kSide);
          }
        }
      }
      rectangle(r, r1, c0, c);  // what lies below the squares, then what lies beside them
      rectangle(r0, r1, c, c1);
    }
  }
}

// row(to, from, n) for rows of the inner dimension, or with rank 1 for parts of it; block(to, from, first, end) for
// rows of the last but one.
template <class Row, class Block>
void over_rows(const Nest& nest, i64 multiple, const Row& row_body, const Block& block) {
  const int inner = nest.rank - 1;
  const int rows_dim = nest.rank - 2;
  const i64 row = nest.sizes[inner];
  if (nest.rank == 1) {
    const i64 to = nest.strides[0][0], from = nest.strides[1][0];
    parallel(row, kGrain, 64, [&](i64 begin, i64 end) {
      row_body(nest.data[0] + begin * to, nest.data[1] + begin * from, end - begin);
    });
    return;
  }
  const i64 rows = nest.total / row;
  const i64 grain = kGrain / row + 1;
  parallel(rows, grain, multiple, [&](i64 begin, i64 end) {
    const i64 group = nest.sizes[rows_dim];
    for (i64 r = begin; r < end;) {
      i64 rest = r / group;
      const i64 first = r % group;
      const i64 count = smaller(group - first, end - r);
      char* to = nest.data[0];
      const char* from = nest.data[1];
      for (int d = rows_dim - 1; d >= 0; --d) {
        to += rest % nest.sizes[d] * nest.strides[0][d];
        from += rest % nest.sizes[d] * nest.strides[1][d];
        rest /= nest.sizes[d];
      }
      block(to, from, first, first + count);
      r += count;
    }
  });
}

// The rows of over_rows' block, one after the other.
template <class Row>
void each_row(const Nest& nest, char* to, const char* from, i64 first, i64 end, const Row& row_body) {
  const int rows_dim = nest.rank - 2;
  for (i64 i = first; i < end; ++i) {
    row_body(to + i * nest.strides[0][rows_dim], from + i * nest.strides[1][rows_dim], nest.sizes[nest.rank - 1]);
  }
}

template <class T>
void copy_same(const Nest& nest) {
  const int inner = nest.rank - 1;
  const i64 to_step = nest.strides[0][inner], from_step = nest.strides[1][inner];
  const bool tiled = nest.rank > 1 && from_step != static_cast<i64>(sizeof(T)) && from_step != 0;
  const auto row = [&](char* to, const char* from, i64 n) { copy_row<T>(to, from, to_step, from_step, n); };
  over_rows(nest, tiled ? kTile : 1, row, [&](char* to, const char* from, i64 first, i64 end) {
    if (tiled) return copy_tiles<T>(to, from, nest, nest.rank - 2, first, end);
    each_row(nest, to, from, first, end, row);
  });
}

// One side holds lanes, contiguous in each row: they are converted where they lie. False where neither does, or rows
// are short.
bool convert_rows(const Nest& nest, Dtype destination, Dtype source, Lane lane) {
  const int inner = nest.rank - 1;
  if (nest.sizes[inner] < kShortRow) return false;
  const i64 to_step = nest.strides[0][inner], from_step = nest.strides[1][inner];
  const i64 bytes = kLaneBytes[static_cast<int>(lane)];
  const auto run = [&](const auto& row) {
    over_rows(nest, 1, row,
              [&](char* to, const char* from, i64 first, i64 end) { each_row(nest, to, from, first, end, row); });
    return true;
  };
  if (is_native(destination, lane) && to_step == bytes) {
    const Load load = load_function(source, lane);
    return run([&](char* to, const char* from, i64 n) { load(to, from, from_step, n); });
  }
  if (is_native(source, lane) && from_step == bytes) {
    const Store store = store_function(destination, lane);
    return run([&](char* to, const char* from, i64 n) { store(to, to_step, from, n); });
  }
  return false;
}

// Staged through lanes: both operands convert, or what would be lanes does not lie in rows.
template <class T>
void move_body(char* const* pointers, i64 n, i64, const void*) {
  __builtin_memcpy(pointers[0], pointers[1], static_cast<std::size_t>(n) * sizeof(T));
}

void copy(KernelContext&, Views outputs, Views inputs, const void*) { copy_view(at(outputs, 0), at(inputs, 0)); }

template <class T>
void fill_row(char* destination, i64 stride, T value, i64 n) {
  if (stride == static_cast<i64>(sizeof(T))) {
    T* out = reinterpret_cast<T*>(destination);
    for (i64 i = 0; i < n; ++i) out[i] = value;
  } else {
    for (i64 i = 0; i < n; ++i) *reinterpret_cast<T*>(destination + i * stride) = value;
  }
}

template <class T>
void fill_with(const TensorView& y, const void* element) {
  T value;
  __builtin_memcpy(&value, element, sizeof value);
  if (contiguous(y)) {
    parallel(numel(y), kGrain, 64, [&](i64 begin, i64 end) {
      fill_row<T>(static_cast<char*>(y.data) + begin * static_cast<i64>(sizeof(T)), sizeof(T), value, end - begin);
    });
    return;
  }
  const TensorView* views[] = {&y};
  Nest nest;
  make_nest(nest, views, 1, true);
  if (nest.total <= 0) return;
  const i64 row = nest.sizes[nest.rank - 1];
  parallel(nest.total / row, kGrain / row + 1, 1, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      char* to = nest.data[0];
      i64 rest = r;
      for (int d = nest.rank - 2; d >= 0; --d) {
        to += rest % nest.sizes[d] * nest.strides[0][d];
        rest /= nest.sizes[d];
      }
      fill_row<T>(to, nest.strides[0][nest.rank - 1], value, row);
    }
  });
}

void fill(KernelContext&, Views outputs, Views, const void* attributes) {
  const ScalarValue& value = static_cast<const FillAttributes*>(attributes)->value;
  const TensorView& y = at(outputs, 0);
  const Lane lane = lane_of(y.dtype);
  alignas(8) char lanes[8];
  if (lane == Lane::kF32) {
    const float real = static_cast<float>(value.real);
    __builtin_memcpy(lanes, &real, sizeof real);
  } else if (lane == Lane::kF64) {
    __builtin_memcpy(lanes, &value.real, 8);
  } else {
    __builtin_memcpy(lanes, &value.integer, 8);
  }
  alignas(8) char element[8];
  store_function(y.dtype, lane)(element, bytes_of(y.dtype), lanes, 1);
  switch (bytes_of(y.dtype)) {
    case 1:
      return fill_with<u8>(y, element);
    case 2:
      return fill_with<u16>(y, element);
    case 4:
      return fill_with<u32>(y, element);
    default:
      return fill_with<u64>(y, element);
  }
}

}  // namespace

void copy_view(const TensorView& destination, const TensorView& source) {
  const TensorView* views[] = {&destination, &source};
  Nest nest;
  make_nest(nest, views, 2, true);
  if (nest.total <= 0) return;
  if (destination.dtype == source.dtype) {
    if (nest.data[0] == nest.data[1]) return;
    switch (bytes_of(destination.dtype)) {
      case 1:
        return copy_same<u8>(nest);
      case 2:
        return copy_same<u16>(nest);
      case 4:
        return copy_same<u32>(nest);
      default:
        return copy_same<u64>(nest);
    }
  }
  // Computed in the wider of the two lanes, integers exactly.
  const Lane from = lane_of(source.dtype);
  if (convert_rows(nest, destination.dtype, source.dtype, from)) return;
  Work work{.views = {&destination, &source}, .operands = 2, .grain = kGrain};
  work.lanes[0] = work.lanes[1] = from;
  work.body = from == Lane::kF32 ? &move_body<float> : &move_body<u64>;
  run_pointwise(work);
}

void add_copy(const KernelSink& sink) {
  sink.add(sink.host, "copy", &copy);
  sink.add(sink.host, "fill", &fill);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
