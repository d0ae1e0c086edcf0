// Shape arithmetic: strides, broadcasting, views.
#include <tenon/tensor/shape/dims.h>

#include <algorithm>
#include <utility>

namespace tenon {

void Dims::too_many(int rank) {
  throw Error("a tensor may have at most " + std::to_string(kMaxRank) + " dimensions, got " + std::to_string(rank));
}

std::vector<std::int64_t> Dims::vec() const { return {begin(), end()}; }

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.rank(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

namespace {

std::int64_t next_stride(std::int64_t step, std::int64_t size, const Dims& sizes) {
  std::int64_t next;
  if (__builtin_mul_overflow(step, std::max<std::int64_t>(size, 1), &next)) {
    throw Error("Stride calculation overflowed with sizes=" + to_string(sizes));
  }
  return next;
}

}  // namespace

Dims contiguous_strides(const Dims& sizes) {
  Dims strides;
  strides.resize(sizes.rank());
  std::int64_t step = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    strides[i] = step;
    step = next_stride(step, sizes[i], sizes);
  }
  return strides;
}

Dims channels_last_strides(const Dims& sizes) {
  const int rank = sizes.rank();
  if (rank != 4 && rank != 5) return contiguous_strides(sizes);
  Dims strides;
  strides.resize(rank);
  strides[1] = 1;
  std::int64_t step = next_stride(1, sizes[1], sizes);
  for (int i = rank - 1; i >= 2; --i) {
    strides[i] = step;
    step = next_stride(step, sizes[i], sizes);
  }
  strides[0] = step;
  return strides;
}

namespace {

/// Whether dimension `outer` of a result lies inside `inner`, at operands that say so: > 0 if it does, < 0 if it does
/// not, 0 if nobody decides.
int lies_inside(const Dims& sizes, int inner, int outer, std::initializer_list<Strided> operands) {
  for (const Strided& operand : operands) {
    const int added = sizes.rank() - operand.sizes.rank();
    const auto stride = [&](int dim) {
      if (dim < added || (operand.sizes[dim - added] == 1 && sizes[dim] != 1)) return std::int64_t{0};
      return operand.strides[dim - added];
    };
    const std::int64_t a = stride(inner);
    const std::int64_t b = stride(outer);
    if (a == 0 || b == 0) continue;
    if (a != b) return a < b ? -1 : 1;
    if (sizes[inner] > sizes[outer]) return 1;
  }
  return 0;
}

}  // namespace

Dims result_strides(const Dims& sizes, std::initializer_list<Strided> operands) {
  const int rank = sizes.rank();
  int order[kMaxRank];  // from the innermost
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  // Insertion, since comparisons may say nothing: a sort by them would have no order to rely on.
  for (int i = 1; i < rank; ++i) {
    int at = i;
    for (int before = i - 1; before >= 0; --before) {
      const int says = lies_inside(sizes, order[before], order[at], operands);
      if (says < 0) break;
      if (says == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  Dims strides;
  strides.resize(rank);
  std::int64_t step = 1;
  for (int i = 0; i < rank; ++i) {
    strides[order[i]] = step;
    step = next_stride(step, sizes[order[i]], sizes);
  }
  return strides;
}

Dims broadcast_sizes(const Dims& a, const Dims& b) {
  if (a == b) return a;
  const int rank = std::max(a.rank(), b.rank());
  Dims result;
  result.resize(rank);
  for (int i = rank - 1; i >= 0; --i) {
    const int from_end = rank - 1 - i;
    const std::int64_t left = from_end < a.rank() ? a[a.rank() - 1 - from_end] : 1;
    const std::int64_t right = from_end < b.rank() ? b[b.rank() - 1 - from_end] : 1;
    if (left != right && left != 1 && right != 1) {
      throw Error("The size of tensor a (" + std::to_string(left) + ") must match the size of tensor b (" +
                  std::to_string(right) + ") at non-singleton dimension " + std::to_string(i) + " (shapes " +
                  to_string(a) + " and " + to_string(b) + ")");
    }
    result[i] = left == 1 ? right : left;
  }
  return result;
}

bool is_expandable_to(const Dims& from, const Dims& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 0; i < from.rank(); ++i) {
    const std::int64_t size = from[from.rank() - 1 - i];
    if (size != to[to.rank() - 1 - i] && size != 1) return false;
  }
  return true;
}

Dims expanded_strides(const Dims& sizes, const Dims& strides, const Dims& to) {
  Dims result;
  result.resize(to.rank());
  const int added = to.rank() - sizes.rank();
  for (int i = 0; i < to.rank(); ++i) {
    result[i] = i < added || (sizes[i - added] == 1 && to[i] != 1) ? 0 : strides[i - added];
  }
  return result;
}

std::optional<Dims> view_strides(const Dims& sizes, const Dims& strides, const Dims& to) {
  const std::int64_t elements = sizes.product();
  if (elements == 0) return sizes == to ? strides : contiguous_strides(to);
  Dims result;
  result.resize(to.rank());
  if (sizes.rank() == 0) {
    for (int i = 0; i < to.rank(); ++i) result[i] = 1;
    return result;
  }
  // Walks runs of old dimensions that are dense among themselves, from the end, and splits each run anew.
  int next = to.rank() - 1;
  std::int64_t base = strides.back();
  std::int64_t old_run = 1;
  std::int64_t new_run = 1;
  for (int i = sizes.rank() - 1; i >= 0; --i) {
    old_run *= sizes[i];
    if (i == 0 || (sizes[i - 1] != 1 && strides[i - 1] != old_run * base)) {
      while (next >= 0 && (new_run < old_run || to[next] == 1)) {
        result[next] = new_run * base;
        new_run *= to[next];
        --next;
      }
      if (new_run != old_run) return std::nullopt;
      base = strides[std::max(i - 1, 0)];
      old_run = 1;
      new_run = 1;
    }
  }
  if (next != -1) return std::nullopt;
  return result;
}

Dims infer_sizes(IntArrayRef to, std::int64_t elements) {
  Dims result(to);
  std::int64_t known = 1;
  bool overflow = false;
  int unknown = -1;
  for (int i = 0; i < result.rank(); ++i) {
    if (result[i] == -1) {
      if (unknown >= 0) throw Error("only one dimension can be inferred");
      unknown = i;
    } else if (result[i] < 0) {
      throw Error("invalid shape dimension " + std::to_string(result[i]));
    } else {
      overflow |= __builtin_mul_overflow(known, result[i], &known);
    }
  }
  if (overflow) throw Error("shape '" + to_string(to) + "' is invalid for input of size " + std::to_string(elements));
  if (unknown >= 0 && known > 0 && elements % known == 0) {
    result[unknown] = elements / known;
    return result;
  }
  if (unknown >= 0 && known == 0 && elements == 0) {
    throw Error("cannot reshape tensor of 0 elements into shape " + to_string(to) +
                " because the unspecified dimension size -1 can be any value and is ambiguous");
  }
  if (unknown >= 0 || known != elements) {
    throw Error("shape '" + to_string(to) + "' is invalid for input of size " + std::to_string(elements));
  }
  return result;
}

int wrap_dim(std::int64_t dim, int rank, bool scalars_have_one) {
  if (rank == 0) {
    if (!scalars_have_one) {
      throw IndexError("Dimension specified as " + std::to_string(dim) + " but tensor has no dimensions");
    }
    rank = 1;
  }
  if (dim < -rank || dim >= rank) {
    throw IndexError("Dimension out of range (expected to be in range of [" + std::to_string(-rank) + ", " +
                     std::to_string(rank - 1) + "], but got " + std::to_string(dim) + ")");
  }
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

}  // namespace tenon
