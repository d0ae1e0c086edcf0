// Views, joining, splitting, turning, padding.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

void views() {
#define BOTH(name, words, parameters, ...)                                                   \
  add(#name, words, [](Tensor x COMMA parameters) { return torch::name(x, __VA_ARGS__); }); \
  add("Tensor." #name, words, [](Tensor x COMMA parameters) { return x.name(__VA_ARGS__); });
#define COMMA ,
  using Int = std::int64_t;
  BOTH(reshape, "x sizes", Ints sizes, sizes)
  add("Tensor.view", "x sizes", [](Tensor x, Ints sizes) { return x.view(sizes); });
  add("Tensor.view.dtype", "x dtype", [](Tensor x, Dtype dtype) { return x.view(dtype); });
  add("Tensor.expand", "x expand", [](Tensor x, Ints sizes) { return x.expand(sizes); });
  add("Tensor.expand_as", "x y", [](Tensor x, Tensor y) { return x.expand_as(y); });
  add("Tensor.view_as", "x y", [](Tensor x, Tensor y) { return x.view_as(y); });
  add("Tensor.reshape_as", "x y", [](Tensor x, Tensor y) { return x.reshape_as(y); });
  add("broadcast_to", "x expand", [](Tensor x, Ints sizes) { return torch::broadcast_to(x, sizes); });
  add("broadcast_tensors", "like", [](Tensors list) { return torch::broadcast_tensors(list); });
  BOTH(flatten, "x dim dim", Int a COMMA Int b, a, b)
  add("ravel", "x", [](Tensor x) { return torch::ravel(x); });
  BOTH(transpose, "x dim dim", Int a COMMA Int b, a, b)
  add("swapaxes", "x dim dim", [](Tensor x, Int a, Int b) { return torch::swapaxes(x, a, b); });
  add("Tensor.transpose_", "x dim dim", [](Tensor x, Int a, Int b) { return Tensor(x.transpose_(a, b)); });
  add("t", "x", [](Tensor x) { return torch::t(x); });
  add("Tensor.t_", "x", [](Tensor x) { return Tensor(x.t_()); });
  BOTH(permute, "x permutation", Ints dims, dims)
  add("squeeze", "x", [](Tensor x) { return torch::squeeze(x); });
  add("squeeze.dim", "x dim", [](Tensor x, Int dim) { return torch::squeeze(x, dim); });
  add("Tensor.squeeze_", "x dim", [](Tensor x, Int dim) { return Tensor(x.squeeze_(dim)); });
  add("unsqueeze", "x dim", [](Tensor x, Int dim) { return torch::unsqueeze(x, dim); });
  add("Tensor.unsqueeze_", "x dim", [](Tensor x, Int dim) { return Tensor(x.unsqueeze_(dim)); });
  add("unflatten", "x dim factor", [](Tensor x, Int dim, Ints sizes) { return x.unflatten(dim, sizes); });
  add("movedim", "x dim dim", [](Tensor x, Int a, Int b) { return torch::movedim(x, a, b); });
  add("movedim.dims", "x dims dims", [](Tensor x, Ints a, Ints b) { return torch::movedim(x, a, b); });
  add("atleast_1d", "x", [](Tensor x) { return torch::atleast_1d(x); });
  add("atleast_2d", "x", [](Tensor x) { return torch::atleast_2d(x); });
  add("atleast_3d", "x", [](Tensor x) { return torch::atleast_3d(x); });
  BOTH(select, "x dim int(-2..2)", Int dim COMMA Int at, dim, at)
  BOTH(slice, "x dim opt(int(-3..3)) opt(int(-2..4)) int(1..3)",
       Int dim COMMA std::optional<Int> start COMMA std::optional<Int> end COMMA Int step, dim, start, end, step)
  BOTH(narrow, "x dim int(-2..2) int(0..2)", Int dim COMMA Int start COMMA Int length, dim, start, length)
  BOTH(diagonal, "x int(-2..2) dim dim", Int offset COMMA Int a COMMA Int b, offset, a, b)
  add("as_strided", "x sizes2 strides2 opt(int(0..2))", [](Tensor x, Ints sizes, Ints strides, std::optional<Int> at) {
    return torch::as_strided(x, sizes, strides, at);
  });
  add("Tensor.unfold", "x dim int(1..3) int(1..2)",
      [](Tensor x, Int dim, Int size, Int step) { return x.unfold(dim, size, step); });
  add("Tensor.contiguous", "x", [](Tensor x) { return x.contiguous(); });
  add("Tensor.contiguous.last", "x", [](Tensor x) { return x.contiguous(torch::MemoryFormat::ChannelsLast); });
  add("Tensor.resize_", "plain sizes2", [](Tensor x, Ints sizes) { return Tensor(x.resize_(sizes).fill_(1)); });
}

void joined() {
  using Int = std::int64_t;
  add("cat", "joined dim0", [](Tensors list, Int dim) { return torch::cat(list, dim); });
  add("cat_out", "out joined dim0", [](Tensor out, Tensors list, Int dim) {
    return Tensor(torch::cat_out(out, list, dim));
  });
  add("concat", "joined dim0", [](Tensors list, Int dim) { return torch::concat(list, dim); });
  add("stack", "same dim0", [](Tensors list, Int dim) { return torch::stack(list, dim); });
  add("stack_out", "out same dim0", [](Tensor out, Tensors list, Int dim) {
    return Tensor(torch::stack_out(out, list, dim));
  });
  add("hstack", "joined", [](Tensors list) { return torch::hstack(list); });
  add("vstack", "joined", [](Tensors list) { return torch::vstack(list); });
  add("dstack", "joined", [](Tensors list) { return torch::dstack(list); });
  add("column_stack", "joined", [](Tensors list) { return torch::column_stack(list); });
  add("meshgrid", "vectors text(ij|xy)", [](Tensors list, std::string how) { return torch::meshgrid(list, how); });
  add("cartesian_prod", "vectors", [](Tensors list) { return torch::cartesian_prod(list); });
  add("combinations", "vector int(0..3) b",
      [](Tensor x, Int r, bool again) { return torch::combinations(x, r, again); });
  add("unbind", "x dim", [](Tensor x, Int dim) { return torch::unbind(x, dim); });
  add("split", "x int(0..3) dim", [](Tensor x, Int size, Int dim) { return torch::split(x, size, dim); });
  add("split_with_sizes", "x parts dim0", [](Tensor x, Ints sizes, Int dim) {
    return torch::split_with_sizes(x, sizes, dim);
  });
  add("chunk", "x int(0..4) dim", [](Tensor x, Int chunks, Int dim) { return torch::chunk(x, chunks, dim); });
  add("tensor_split", "x int(0..4) dim", [](Tensor x, Int parts, Int dim) { return torch::tensor_split(x, parts, dim); });
  add("tensor_split.at", "x cuts dim", [](Tensor x, Ints at, Int dim) { return torch::tensor_split(x, at, dim); });
  add("hsplit", "x int(1..3)", [](Tensor x, Int n) { return torch::hsplit(x, n); });
  add("vsplit", "x int(1..3)", [](Tensor x, Int n) { return torch::vsplit(x, n); });
  add("dsplit", "x int(1..3)", [](Tensor x, Int n) { return torch::dsplit(x, n); });
}

void turned() {
  using Int = std::int64_t;
  BOTH(flip, "x dims", Ints dims, dims)
  add("fliplr", "x", [](Tensor x) { return torch::fliplr(x); });
  add("flipud", "x", [](Tensor x) { return torch::flipud(x); });
  add("roll", "x shifts dims", [](Tensor x, Ints shifts, Ints dims) { return torch::roll(x, shifts, dims); });
  add("roll.flat", "x int(-3..3)", [](Tensor x, Int shift) { return torch::roll(x, shift); });
  add("rot90", "x int(-3..4) dims", [](Tensor x, Int k, Ints dims) { return torch::rot90(x, k, dims); });
  add("Tensor.repeat", "x repeats", [](Tensor x, Ints repeats) { return x.repeat(repeats); });
  add("tile", "x repeats", [](Tensor x, Ints repeats) { return torch::tile(x, repeats); });
  add("repeat_interleave", "x int(0..3) opt(dim)", [](Tensor x, Int n, std::optional<Int> dim) {
    return torch::repeat_interleave(x, n, dim);
  });
  add("repeat_interleave.Tensor", "x repeatvector dim0", [](Tensor x, Tensor n, Int dim) {
    return torch::repeat_interleave(x, n, dim);
  });
#define TRIANGLE(name)                                                                       \
  add(#name, "x int(-2..2)", [](Tensor x, Int k) { return torch::name(x, k); });             \
  add("Tensor." #name "_", "x int(-2..2)", [](Tensor x, Int k) { return Tensor(x.name##_(k)); }); \
  add(#name "_out", "out x int(-2..2)", [](Tensor out, Tensor x, Int k) { return Tensor(torch::name##_out(out, x, k)); });
  TRIANGLE(tril) TRIANGLE(triu)
#undef TRIANGLE
  add("diag", "x int(-2..2)", [](Tensor x, Int k) { return torch::diag(x, k); });
  add("diag_embed", "x int(-2..2) dim dim", [](Tensor x, Int k, Int a, Int b) { return torch::diag_embed(x, k, a, b); });
  add("diagflat", "x int(-2..2)", [](Tensor x, Int k) { return torch::diagflat(x, k); });
  add("constant_pad_nd", "x pad s", [](Tensor x, Ints pad, Scalar s) { return torch::constant_pad_nd(x, pad, s); });
  add("pad", "x pad text(constant|reflect|replicate|circular)", [](Tensor x, Ints pad, std::string mode) {
    return torch::pad(x, pad, mode);
  });
  add("pixel_shuffle", "x4 int(1..2)", [](Tensor x, Int n) { return torch::pixel_shuffle(x, n); });
  add("pixel_unshuffle", "x4 int(1..2)", [](Tensor x, Int n) { return torch::pixel_unshuffle(x, n); });
}

}  // namespace

void add_shapes() {
  views();
  joined();
  turned();
}

}  // namespace differential
// clang-format on
