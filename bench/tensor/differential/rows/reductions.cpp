// Reductions, scans, sorting and statistics.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

void sums() {
#define SUMS(name)                                                                                                    \
  add(#name ".all", "x opt(dtype)", [](Tensor x, OptionalDtype dtype) { return torch::name(x, dtype); });             \
  add(#name, "x opt(dims) b opt(dtype)",                                                                              \
      [](Tensor x, OptionalInts dim, bool keep, OptionalDtype dtype) { return torch::name(x, dim, keep, dtype); });   \
  add("Tensor." #name, "x dim b", [](Tensor x, std::int64_t dim, bool keep) { return x.name(dim, keep); });           \
  add(#name "_out", "out x dims b opt(dtype)", [](Tensor out, Tensor x, Ints dim, bool keep, OptionalDtype dtype) {   \
    return Tensor(torch::name##_out(out, x, dim, keep, dtype));                                                       \
  });
  SUMS(sum) SUMS(mean)
#undef SUMS
  add("nansum", "x opt(dims) b opt(dtype)",
      [](Tensor x, OptionalInts dim, bool keep, OptionalDtype dtype) { return torch::nansum(x, dim, keep, dtype); });
  add("nanmean", "x opt(dims) b opt(dtype)",
      [](Tensor x, OptionalInts dim, bool keep, OptionalDtype dtype) { return torch::nanmean(x, dim, keep, dtype); });
  add("prod.all", "x opt(dtype)", [](Tensor x, OptionalDtype dtype) { return torch::prod(x, dtype); });
  add("prod", "x dim b opt(dtype)",
      [](Tensor x, std::int64_t dim, bool keep, OptionalDtype dtype) { return torch::prod(x, dim, keep, dtype); });
#define SCAN(name)                                                                                                   \
  add(#name, "x dim opt(dtype)",                                                                                     \
      [](Tensor x, std::int64_t dim, OptionalDtype dtype) { return torch::name(x, dim, dtype); });                   \
  add(#name "_out", "out x dim opt(dtype)", [](Tensor out, Tensor x, std::int64_t dim, OptionalDtype dtype) {        \
    return Tensor(torch::name##_out(out, x, dim, dtype));                                                            \
  });                                                                                                                \
  add("Tensor." #name "_", "x dim", [](Tensor x, std::int64_t dim) { return Tensor(x.name##_(dim)); });
  SCAN(cumsum) SCAN(cumprod)
#undef SCAN
  add("logcumsumexp", "x dim", [](Tensor x, std::int64_t dim) { return torch::logcumsumexp(x, dim); });
  add("cummax", "x dim", [](Tensor x, std::int64_t dim) { return torch::cummax(x, dim); });
  add("cummin", "x dim", [](Tensor x, std::int64_t dim) { return torch::cummin(x, dim); });
  add("softmax", "x dim opt(dtype)",
      [](Tensor x, std::int64_t dim, OptionalDtype dtype) { return torch::softmax(x, dim, dtype); });
  add("log_softmax", "x dim opt(dtype)",
      [](Tensor x, std::int64_t dim, OptionalDtype dtype) { return torch::log_softmax(x, dim, dtype); });
  add("logsumexp", "x dims b", [](Tensor x, Ints dim, bool keep) { return torch::logsumexp(x, dim, keep); });
  add("logsumexp_out", "out x dims b", [](Tensor out, Tensor x, Ints dim, bool keep) {
    return Tensor(torch::logsumexp_out(out, x, dim, keep));
  });
  add("diff", "x int(0..3) dim opt(y) opt(y)",
      [](Tensor x, std::int64_t n, std::int64_t dim, OptionalTensor a, OptionalTensor b) {
        return torch::diff(x, n, dim, a, b);
      });
  add("trapezoid", "x dim", [](Tensor x, std::int64_t dim) { return torch::trapezoid(x, 0.5, dim); });
  add("trapezoid.x", "x e dim", [](Tensor y, Tensor x, std::int64_t dim) { return torch::trapezoid(y, x, dim); });
  add("cumulative_trapezoid", "x dim",
      [](Tensor x, std::int64_t dim) { return torch::cumulative_trapezoid(x, 0.5, dim); });
  add("cumulative_trapezoid.x", "x e dim",
      [](Tensor y, Tensor x, std::int64_t dim) { return torch::cumulative_trapezoid(y, x, dim); });
}

void extremes() {
#define EXTREME(name)                                                                                           \
  add(#name ".all", "x", [](Tensor x) { return torch::name(x); });                                              \
  add(#name ".dim", "x dim b", [](Tensor x, std::int64_t dim, bool keep) { return torch::name(x, dim, keep); }); \
  add(#name "_out.dim", "out outi x dim b", [](Tensor v, Tensor i, Tensor x, std::int64_t dim, bool keep) {     \
    const auto [a, b] = torch::name##_out(v, i, x, dim, keep);                                                  \
    return std::tuple<Tensor, Tensor>(a, b);                                                                    \
  });
  EXTREME(max) EXTREME(min)
#undef EXTREME
  add("median.all", "x", [](Tensor x) { return torch::median(x); });
  add("nanmedian.all", "x", [](Tensor x) { return torch::nanmedian(x); });
#define PICK(name)                                                                                              \
  add(#name, "x dim b", [](Tensor x, std::int64_t dim, bool keep) { return torch::name(x, dim, keep); });
  PICK(median) PICK(nanmedian) PICK(mode)
#undef PICK
#define RANGE(name)                                                                                             \
  add(#name, "x dims b", [](Tensor x, Ints dim, bool keep) { return torch::name(x, dim, keep); });              \
  add(#name "_out", "out x dims b", [](Tensor out, Tensor x, Ints dim, bool keep) {                             \
    return Tensor(torch::name##_out(out, x, dim, keep));                                                        \
  });
  RANGE(amax) RANGE(amin)
#undef RANGE
  add("aminmax", "x opt(dim) b", [](Tensor x, std::optional<std::int64_t> dim, bool keep) {
    const auto [low, high] = torch::aminmax(x, dim, keep);
    return std::tuple<Tensor, Tensor>(low, high);
  });
#define POSITION(name)                                                                                    \
  add(#name, "x opt(dim) b",                                                                              \
      [](Tensor x, std::optional<std::int64_t> dim, bool keep) { return torch::name(x, dim, keep); });    \
  add(#name "_out", "outi x opt(dim) b", [](Tensor out, Tensor x, std::optional<std::int64_t> dim, bool keep) { \
    return Tensor(torch::name##_out(out, x, dim, keep));                                                  \
  });
  POSITION(argmax) POSITION(argmin)
#undef POSITION
#define TRUTH(name)                                                                                                 \
  add(#name ".all", "x", [](Tensor x) { return torch::name(x); });                                                  \
  add(#name ".dim", "x dim b", [](Tensor x, std::int64_t dim, bool keep) { return torch::name(x, dim, keep); });    \
  add(#name "_out.dim", "outb x dim b", [](Tensor out, Tensor x, std::int64_t dim, bool keep) {                     \
    return Tensor(torch::name##_out(out, x, dim, keep));                                                            \
  });
  TRUTH(any) TRUTH(all)
#undef TRUTH
}

void spread() {
#define SPREAD(name)                                                                                                   \
  add(#name ".all", "x b", [](Tensor x, bool unbiased) { return torch::name(x, unbiased); });                          \
  add(#name, "x opt(dims) b b", [](Tensor x, OptionalInts dim, bool unbiased, bool keep) {                             \
    return torch::name(x, dim, unbiased, keep);                                                                        \
  });
  SPREAD(var) SPREAD(std) SPREAD(var_mean) SPREAD(std_mean)
#undef SPREAD
  add("norm.all", "x s", [](Tensor x, Scalar p) { return torch::norm(x, p); });
  add("norm", "x opt(s) dims b",
      [](Tensor x, OptionalScalar p, Ints dim, bool keep) { return torch::norm(x, p, dim, keep); });
  add("dist", "x y s", [](Tensor x, Tensor y, Scalar p) { return torch::dist(x, y, p); });
  add("renorm", "x s dim s",
      [](Tensor x, Scalar p, std::int64_t dim, Scalar most) { return torch::renorm(x, p, dim, most); });
  add("linalg_vector_norm", "x s opt(dims) b opt(dtype)",
      [](Tensor x, Scalar ord, OptionalInts dim, bool keep, OptionalDtype dtype) {
        return LINALG(vector_norm)(x, ord, dim, keep, dtype);
      });
  add("trace", "matrix", [](Tensor x) { return torch::trace(x); });
}

void order() {
  add("sort", "x dim b", [](Tensor x, std::int64_t dim, bool down) { return torch::sort(x, dim, down); });
  add("sort.stable", "x opt(b) dim b", [](Tensor x, std::optional<bool> stable, std::int64_t dim, bool down) {
    return torch::sort(x, stable, dim, down);
  });
  add("sort_out", "out outi x dim b", [](Tensor v, Tensor i, Tensor x, std::int64_t dim, bool down) {
    const auto [a, b] = torch::sort_out(v, i, x, dim, down);
    return std::tuple<Tensor, Tensor>(a, b);
  });
  add("argsort.stable", "x b dim b",
      [](Tensor x, bool stable, std::int64_t dim, bool down) { return torch::argsort(x, stable, dim, down); });
  add("msort", "x", [](Tensor x) { return torch::msort(x); });
  add("topk", "x int(0..3) dim b b", [](Tensor x, std::int64_t k, std::int64_t dim, bool largest, bool) {
    return torch::topk(x, k, dim, largest, true);
  });
  add("kthvalue", "x int(1..3) dim b", [](Tensor x, std::int64_t k, std::int64_t dim, bool keep) {
    return torch::kthvalue(x, k, dim, keep);
  });
#define QUANTILE(name)                                                                                              \
  add(#name, "x real(0.0|0.25|0.5|1.0|0.3|1.5) opt(dim) b text(linear|lower|higher|midpoint|nearest)",              \
      [](Tensor x, double q, std::optional<std::int64_t> dim, bool keep, std::string how) {                         \
        return torch::name(x, q, dim, keep, how);                                                                   \
      });                                                                                                           \
  add(#name ".Tensor", "x q opt(dim) b text(linear|lower|higher|midpoint|nearest)",                                 \
      [](Tensor x, Tensor q, std::optional<std::int64_t> dim, bool keep, std::string how) {                         \
        return torch::name(x, q, dim, keep, how);                                                                   \
      });
  QUANTILE(quantile) QUANTILE(nanquantile)
#undef QUANTILE
  add("count_nonzero", "x", [](Tensor x) { return torch::count_nonzero(x); });
  add("count_nonzero.dims", "x dims", [](Tensor x, Ints dim) { return torch::count_nonzero(x, dim); });
  add("bincount", "count opt(likecount) int(0..4)",
      [](Tensor x, OptionalTensor w, std::int64_t n) { return torch::bincount(x, w, n); });
  add("histc", "x int(1..6) real(0.0|-2.0) real(0.0|2.0)",
      [](Tensor x, std::int64_t bins, double low, double high) { return torch::histc(x, bins, low, high); });
}

}  // namespace

void add_reductions() {
  sums();
  extremes();
  spread();
  order();
}

}  // namespace differential
// clang-format on
