// What the _out forms share.
#include <tenon/autograd/variable.h>
#include <tenon/ops/support/out_argument.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/write_checks.h>

#include <algorithm>

namespace tenon::detail {
namespace {

// The functions whose `out` has the result's dtype; the others cast.
constexpr std::string_view kKeepTheirDtype[] = {
    "abs",    "addmm", "amax",  "amin",      "argmax",    "argmin",      "baddbmm",      "bitwise_not",
    "bmm",    "ceil",  "clamp", "clamp_max", "clamp_min", "cumprod",     "cumsum",       "diag",
    "dot",    "floor", "frac",  "gather",    "isfinite",  "isinf",       "isnan",        "linear",
    "matmul", "max",   "min",   "mm",        "mv",        "neg",         "nonzero",      "norm",
    "prod",   "relu",  "round", "sign",      "softmax",   "sort",        "sum",          "take",
    "topk",   "tril",  "triu",  "trunc",     "where",     "log_softmax", "index_select", "masked_select"};
constexpr std::string_view kTruths[] = {"all", "any"};
constexpr std::string_view kWithoutGradient[] = {
#define TENON_COMPARISON(Row, name, ...) #name,
#define TENON_PREDICATE(Row, name, ...) #name,
#include <tenon/kernel/rows/relations.inl>
    "all", "any", "argmax", "argmin", "nonzero"};
constexpr std::string_view kAccumulate[] = {"cumprod", "cumsum", "mean", "prod", "sum"};

template <std::size_t kCount>
bool lists(const std::string_view (&names)[kCount], std::string_view op) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

}  // namespace

OutRule out_rule(std::string_view op) {
  return {.dtype = lists(kTruths, op)           ? OutRule::Asks::kTruth
                   : lists(kKeepTheirDtype, op) ? OutRule::Asks::kSame
                                                : OutRule::Asks::kCastable,
          .differentiable = !lists(kWithoutGradient, op),
          .accumulates = lists(kAccumulate, op)};
}

void check_out_argument(const char* op, const Tensor& argument) {
  if (!autograd::any_requires_grad(argument) || !out_rule(op).differentiable) return;
  throw Error(std::string(op) +
              "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
}

Tensor accumulated_in(const char* op, const Tensor& self, Dtype dtype) {
  if (std::string_view(op) != "mean") return self.to(dtype);
  if (!self.is_floating_point()) return self;  // which mean() refuses
  ops::check_castable(op, self.scalar_type(), dtype);
  return self.to(dtype);
}

Tensor& write_out(const char* op, Tensor& out, const Tensor& result) {
  check_out_argument(op, out);
  ops::check_same_device(op, {&out, &result});
  const Dtype dtype = out.scalar_type();
  switch (out_rule(op).dtype) {
    case OutRule::Asks::kCastable:
      ops::check_castable(op, result.scalar_type(), dtype);
      break;
    case OutRule::Asks::kSame:
      if (dtype == result.scalar_type()) break;
      throw Error(std::string("Expected out tensor to have dtype ") + result.dtype().name() + ", but got " +
                  out.dtype().name() + " instead (in operator " + op + ")");
    case OutRule::Asks::kTruth:
      if (dtype == kBool || dtype == kUInt8) break;
      throw Error(std::string(op) + " only supports bool tensor for result, got: " + toString(dtype));
  }
  NoGradGuard no_grad;
  if (out.sizes() != result.sizes()) out.resize_(result.sizes());
  ops::check_written(out);
  return out.copy_(result);
}

}  // namespace tenon::detail
