// Reductions and scans, one row each. From a row follow, wherever this file is included: the method x.f(…) (tensor.h), the
// function f(x, …) (ops/reduce/reduction.h) and f_out(out, x, …) (ops/out.h). The method's definition, with the gradient,
// stands in ops/reduce; see framework/README.md for what else an operator needs.
//
//   TENON_REDUCTION(name, out, (parameters but the tensor), the arguments that they are passed on as)
//
//   out      what f_out asks of its arguments: a constant of detail::out_rules (ops/support/out_argument.h)

// clang-format off
/// The sum of all elements, or over `dim`, one or several. Of integers and bool it is int64 unless `dtype` says
/// otherwise.
TENON_REDUCTION(sum, kSums, (std::optional<Dtype> dtype = std::nullopt), dtype)
TENON_REDUCTION(sum, kSums, (OptionalIntArrayRef dim, bool keepdim = false, std::optional<Dtype> dtype = std::nullopt), dim, keepdim, dtype)
/// The mean of all elements, or over `dim`; NaN of none. Throws Error for integers and bool where no floating `dtype`
/// is given.
TENON_REDUCTION(mean, kMeans, (std::optional<Dtype> dtype = std::nullopt), dtype)
TENON_REDUCTION(mean, kMeans, (OptionalIntArrayRef dim, bool keepdim = false, std::optional<Dtype> dtype = std::nullopt), dim, keepdim, dtype)
/// The product of all elements, or along one `dim`. Of integers and bool it is int64 unless `dtype` says otherwise.
TENON_REDUCTION(prod, kSums, (std::optional<Dtype> dtype = std::nullopt), dtype)
TENON_REDUCTION(prod, kSums, (std::int64_t dim, bool keepdim = false, std::optional<Dtype> dtype = std::nullopt), dim, keepdim, dtype)
/// The largest (smallest) element over `dim`, or of all where no dim is named; NaN where one is NaN. Equal ones share
/// the gradient. Throws Error where there is none.
TENON_REDUCTION(amax, kSame, (IntArrayRef dim = {}, bool keepdim = false), dim, keepdim)
TENON_REDUCTION(amin, kSame, (IntArrayRef dim = {}, bool keepdim = false), dim, keepdim)
/// The position of the first largest (smallest) element along `dim`, int64, or of the first NaN where there is one;
/// without `dim` in the flattened tensor. Throws Error where there is none.
TENON_REDUCTION(argmax, kPositions, (std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false), dim, keepdim)
TENON_REDUCTION(argmin, kPositions, (std::optional<std::int64_t> dim = std::nullopt, bool keepdim = false), dim, keepdim)
/// Whether any (every) element is not 0, NaN included: bool, but uint8 of a uint8 tensor. Of none: false (true).
TENON_REDUCTION(any, kTruth, ())
TENON_REDUCTION(any, kTruth, (std::int64_t dim, bool keepdim = false), dim, keepdim)
TENON_REDUCTION(all, kTruth, ())
TENON_REDUCTION(all, kTruth, (std::int64_t dim, bool keepdim = false), dim, keepdim)
/// (sum |x|^p)^(1/p), p = 2 unless given. 0 counts the elements that are not 0; infinity gives the largest magnitude,
/// -infinity the smallest. Throws Error for a dtype that is not floating.
TENON_REDUCTION(norm, kSame, (const Scalar& p = 2), p)
TENON_REDUCTION(norm, kSame, (const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim = false), p, dim, keepdim)
/// The variance of all elements, or over `dim`, and its root, the standard deviation: divided by n - 1, or by n where
/// `unbiased` is false. Throws Error for a dtype that is not floating.
TENON_REDUCTION(var, kCastable, (bool unbiased = true), unbiased)
TENON_REDUCTION(var, kCastable, (OptionalIntArrayRef dim, bool unbiased, bool keepdim = false), dim, unbiased, keepdim)
TENON_REDUCTION(std, kCastable, (bool unbiased = true), unbiased)
TENON_REDUCTION(std, kCastable, (OptionalIntArrayRef dim, bool unbiased, bool keepdim = false), dim, unbiased, keepdim)
/// log(sum(exp(x))) over `dim` without overflow; -infinity of none.
TENON_REDUCTION(logsumexp, kCastable, (IntArrayRef dim, bool keepdim = false), dim, keepdim)
/// exp(x) / sum(exp(x)) along `dim`, and its logarithm; x is converted to `dtype` before. Throws Error for a dtype that
/// is not floating.
TENON_REDUCTION(softmax, kSame, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
TENON_REDUCTION(log_softmax, kSame, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
/// The sum (product) of each element and those before it along `dim`. Of integers and bool it is int64 unless `dtype`
/// says otherwise.
TENON_REDUCTION(cumsum, kSums, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
TENON_REDUCTION(cumprod, kSums, (std::int64_t dim, std::optional<Dtype> dtype = std::nullopt), dim, dtype)
/// The logarithm of the sum of exp() of each element and those before it along `dim`, without overflow. Throws Error for
/// a dtype that is not floating.
TENON_REDUCTION(logcumsumexp, kCastable, (std::int64_t dim), dim)
// clang-format on

#undef TENON_REDUCTION
