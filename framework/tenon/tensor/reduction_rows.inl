// Reductions and scans, one row each. From a row follow, wherever this file is included: the method x.f(…) (tensor.h), the
// function f(x, …) (ops/reduce/reduction.h) and f_out(out, x, …) (ops/out.h). The method's definition, with the gradient,
// stands in ops/reduce; see framework/README.md for what else an operator needs.
//
//   TENON_REDUCTION(name, (parameters but the tensor), the arguments that they are passed on as)

// clang-format off
/// The sum of all elements, or along `dim`. Integers are summed in int64.
TENON_REDUCTION(sum, (std::optional<Dtype> dtype = std::nullopt), dtype)
TENON_REDUCTION(sum, (OptionalIntArrayRef dim, bool keepdim = false, std::optional<Dtype> dtype = std::nullopt), dim, keepdim, dtype)
/// Their mean. Throws Error for integers where no floating dtype is given.
TENON_REDUCTION(mean, (std::optional<Dtype> dtype = std::nullopt), dtype)
TENON_REDUCTION(mean, (OptionalIntArrayRef dim, bool keepdim = false, std::optional<Dtype> dtype = std::nullopt), dim, keepdim, dtype)
/// Their product.
TENON_REDUCTION(prod, (std::optional<Dtype> dtype = std::nullopt), dtype)
TENON_REDUCTION(prod, (std::int64_t dim, bool keepdim = false, std::optional<Dtype> dtype = std::nullopt), dim, keepdim, dtype)
/// The largest (smallest) along all of `dim`; NaN wins. Equal ones share the gradient.
TENON_REDUCTION(amax, (IntArrayRef dim = {}, bool keepdim = false), dim, keepdim)
TENON_REDUCTION(amin, (IntArrayRef dim = {}, bool keepdim = false), dim, keepdim)
/// The place of the first largest (smallest) one, int64; without `dim` in the flattened tensor.
TENON_REDUCTION(argmax, (std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false), dim, keepdim)
TENON_REDUCTION(argmin, (std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false), dim, keepdim)
/// Whether any (every) element is not 0: bool, or uint8 of uint8.
TENON_REDUCTION(any, ())
TENON_REDUCTION(any, (std::int64_t dim, bool keepdim = false), dim, keepdim)
TENON_REDUCTION(all, ())
TENON_REDUCTION(all, (std::int64_t dim, bool keepdim = false), dim, keepdim)
/// (sum |x|^p)^(1/p); p may be infinite, and 0 counts what is not 0.
TENON_REDUCTION(norm, (const Scalar& p = 2), p)
TENON_REDUCTION(norm, (const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false), p, dim, keepdim)
/// Variance and standard deviation; `unbiased` divides by n - 1.
TENON_REDUCTION(var, (bool unbiased = true), unbiased)
TENON_REDUCTION(var, (OptionalIntArrayRef dim, bool unbiased, bool keepdim = false), dim, unbiased, keepdim)
TENON_REDUCTION(std, (bool unbiased = true), unbiased)
TENON_REDUCTION(std, (OptionalIntArrayRef dim, bool unbiased, bool keepdim = false), dim, unbiased, keepdim)
/// log(sum(exp(x))) without overflow.
TENON_REDUCTION(logsumexp, (IntArrayRef dim, bool keepdim = false), dim, keepdim)
/// exp(x) / sum(exp(x)) along `dim`, and its logarithm; x is converted to `dtype` before.
TENON_REDUCTION(softmax, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
TENON_REDUCTION(log_softmax, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
/// The sum (product) of each element and those before it along `dim`.
TENON_REDUCTION(cumsum, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
TENON_REDUCTION(cumprod, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
// clang-format on

#undef TENON_REDUCTION
