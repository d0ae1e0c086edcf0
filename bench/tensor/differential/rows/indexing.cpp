// Reading and writing by indices, masks, sets and searches.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

using Int = std::int64_t;

void reading() {
  add("index", "x indices", [](Tensor x, OptionalTensors at) {
    c10::List<std::optional<Tensor>> list;
    for (auto& each : at) list.push_back(each);
    return torch::index(x, list);
  });
  add("index_select", "x dim v", [](Tensor x, Int dim, Tensor i) { return torch::index_select(x, dim, i); });
  add("index_select_out", "out x dim v", [](Tensor out, Tensor x, Int dim, Tensor i) {
    return Tensor(torch::index_select_out(out, x, dim, i));
  });
  add("gather", "x dim i", [](Tensor x, Int dim, Tensor i) { return torch::gather(x, dim, i); });
  add("gather_out", "out x dim i", [](Tensor out, Tensor x, Int dim, Tensor i) {
    return Tensor(torch::gather_out(out, x, dim, i));
  });
  add("take", "x flatindex", [](Tensor x, Tensor i) { return torch::take(x, i); });
  add("take_along_dim", "x i opt(dim)",
      [](Tensor x, Tensor i, std::optional<Int> dim) { return torch::take_along_dim(x, i, dim); });
  add("masked_select", "x m", [](Tensor x, Tensor m) { return torch::masked_select(x, m); });
  add("masked_select_out", "out x m", [](Tensor out, Tensor x, Tensor m) {
    return Tensor(torch::masked_select_out(out, x, m));
  });
  add("nonzero", "x", [](Tensor x) { return torch::nonzero(x); });
  add("argwhere", "x", [](Tensor x) { return torch::argwhere(x); });
  add("embedding", "matrix index int(-1..2) b", [](Tensor w, Tensor i, Int padding, bool scale) {
    return torch::embedding(w, i, padding, scale);
  });
  add("one_hot", "index0 int(-1..6)", [](Tensor i, Int classes) { return torch::one_hot(i, classes); });
}

void writing() {
  add("Tensor.index_put_", "x indices valuefor b", [](Tensor x, OptionalTensors at, Tensor v, bool more) {
    c10::List<std::optional<Tensor>> list;
    for (auto& each : at) list.push_back(each);
    return Tensor(x.index_put_(list, v, more));
  });
  add("index_put", "x indices valuefor b", [](Tensor x, OptionalTensors at, Tensor v, bool more) {
    c10::List<std::optional<Tensor>> list;
    for (auto& each : at) list.push_back(each);
    return torch::index_put(x, list, v, more);
  });
  add("scatter", "x dim i source", [](Tensor x, Int dim, Tensor i, Tensor s) { return torch::scatter(x, dim, i, s); });
  add("Tensor.scatter_", "x dim i source",
      [](Tensor x, Int dim, Tensor i, Tensor s) { return Tensor(x.scatter_(dim, i, s)); });
  add("scatter.value", "x dim i s", [](Tensor x, Int dim, Tensor i, Scalar s) { return torch::scatter(x, dim, i, s); });
  add("scatter.reduce", "x dim i source text(add|multiply)",
      [](Tensor x, Int dim, Tensor i, Tensor s, std::string how) { return torch::scatter(x, dim, i, s, how); });
  add("scatter_add", "x dim i source",
      [](Tensor x, Int dim, Tensor i, Tensor s) { return torch::scatter_add(x, dim, i, s); });
  add("Tensor.scatter_add_", "x dim i source",
      [](Tensor x, Int dim, Tensor i, Tensor s) { return Tensor(x.scatter_add_(dim, i, s)); });
  add("scatter_reduce", "x dim i source text(sum|prod|mean|amax|amin) b",
      [](Tensor x, Int dim, Tensor i, Tensor s, std::string how, bool self) {
        return torch::scatter_reduce(x, dim, i, s, how, self);
      });
  add("index_add", "x dim v rows s",
      [](Tensor x, Int dim, Tensor i, Tensor s, Scalar a) { return torch::index_add(x, dim, i, s, a); });
  add("Tensor.index_add_", "x dim v rows s",
      [](Tensor x, Int dim, Tensor i, Tensor s, Scalar a) { return Tensor(x.index_add_(dim, i, s, a)); });
  add("index_copy", "x dim v rows",
      [](Tensor x, Int dim, Tensor i, Tensor s) { return torch::index_copy(x, dim, i, s); });
  add("index_fill", "x dim v s", [](Tensor x, Int dim, Tensor i, Scalar s) { return torch::index_fill(x, dim, i, s); });
  add("index_fill.Tensor", "x dim v n0",
      [](Tensor x, Int dim, Tensor i, Tensor s) { return torch::index_fill(x, dim, i, s); });
  add("Tensor.index_fill_", "x dim v s",
      [](Tensor x, Int dim, Tensor i, Scalar s) { return Tensor(x.index_fill_(dim, i, s)); });
  add("masked_scatter", "x m vector9", [](Tensor x, Tensor m, Tensor s) { return torch::masked_scatter(x, m, s); });
  add("put", "x flatindex likeindex b",
      [](Tensor x, Tensor i, Tensor s, bool more) { return torch::put(x, i, s, more); });
  add("Tensor.put_", "x flatindex likeindex b",
      [](Tensor x, Tensor i, Tensor s, bool more) { return Tensor(x.put_(i, s, more)); });
}

void searching() {
  add("searchsorted", "@sorted b b", [](Tensor s, Tensor x, bool small, bool right) {
    return torch::searchsorted(s, x, small, right);
  });
  add("bucketize", "x increasing b b",
      [](Tensor x, Tensor edges, bool small, bool right) { return torch::bucketize(x, edges, small, right); });
  add("bucketize.Scalar", "s increasing b b",
      [](Scalar x, Tensor edges, bool small, bool right) { return torch::bucketize(x, edges, small, right); });
  add("isin", "x vector b", [](Tensor x, Tensor t, bool not_in) { return torch::isin(x, t, false, not_in); });
  add("isin.Scalar", "x s b", [](Tensor x, Scalar t, bool not_in) { return torch::isin(x, t, false, not_in); });
  add("_unique2", "x b b", [](Tensor x, bool inverse, bool counts) { return torch::_unique2(x, true, inverse, counts); });
  add("unique_dim", "x dim b b", [](Tensor x, Int dim, bool inverse, bool counts) {
    return torch::unique_dim(x, dim, true, inverse, counts);
  });
  add("unique_consecutive", "x b b opt(dim)", [](Tensor x, bool inverse, bool counts, std::optional<Int> dim) {
    return torch::unique_consecutive(x, inverse, counts, dim);
  });
  add("tril_indices", "int(0..4) int(0..4) int(-2..2)",
      [](Int r, Int c, Int k) { return torch::tril_indices(r, c, k); });
  add("triu_indices", "int(0..4) int(0..4) int(-2..2)",
      [](Int r, Int c, Int k) { return torch::triu_indices(r, c, k); });
}

}  // namespace

void add_indexing() {
  reading();
  writing();
  searching();
}

}  // namespace differential
// clang-format on
