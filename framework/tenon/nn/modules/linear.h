// Linear maps and the modules that only reshape: Identity, Linear, Bilinear, Flatten, Unflatten.
#pragma once

#include <tenon/nn/containers/cloneable.h>
#include <tenon/nn/options/arg.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon::nn {

/// Returns its input; any constructor arguments are ignored.
class TENON_EXPORT IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// The input itself.
  TENON_API Tensor forward(const Tensor& input);
};
TENON_LIBRARY_MODULE(Identity);

struct LinearOptions {
  LinearOptions(std::int64_t in_features, std::int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  TENON_ARG(std::int64_t, in_features);   ///< the size of the input's last dim
  TENON_ARG(std::int64_t, out_features);  ///< the size of the output's last dim
  TENON_ARG(bool, bias) = true;           ///< whether there is a bias
};

/// y = x A^T + b: (*, in_features) -> (*, out_features).
class TENON_EXPORT LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(std::int64_t in_features, std::int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  TENON_API explicit LinearImpl(const LinearOptions& options);

  TENON_API void reset() override;
  /// Draws weight and bias anew from U(-b, b), b = 1 / sqrt(in_features).
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  TENON_API Tensor forward(const Tensor& input);

  LinearOptions options;
  Tensor weight;  ///< (out_features, in_features)
  Tensor bias;    ///< (out_features); undefined without one
};
TENON_LIBRARY_MODULE(Linear);

struct BilinearOptions {
  BilinearOptions(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  TENON_ARG(std::int64_t, in1_features);  ///< the last size of the first input
  TENON_ARG(std::int64_t, in2_features);  ///< the last size of the second input
  TENON_ARG(std::int64_t, out_features);  ///< the size of the output's last dim
  TENON_ARG(bool, bias) = true;           ///< whether there is a bias
};

/// y = x1^T A x2 + b.
class TENON_EXPORT BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  BilinearImpl(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  TENON_API explicit BilinearImpl(const BilinearOptions& options);

  TENON_API void reset() override;
  /// Draws weight and bias anew from U(-b, b), b = 1 / sqrt(in1_features).
  TENON_API void reset_parameters();
  TENON_API void pretty_print(std::ostream& stream) const override;
  TENON_API Tensor forward(const Tensor& input1, const Tensor& input2);

  BilinearOptions options;
  Tensor weight;  ///< (out_features, in1_features, in2_features)
  Tensor bias;
};
TENON_LIBRARY_MODULE(Bilinear);

struct FlattenOptions {
  TENON_ARG(std::int64_t, start_dim) = 1;  ///< the first dim that is merged
  TENON_ARG(std::int64_t, end_dim) = -1;   ///< the last dim that is merged
};

class TENON_EXPORT FlattenImpl : public Cloneable<FlattenImpl> {
 public:
  TENON_API explicit FlattenImpl(const FlattenOptions& options = {});
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// Joins the dims from start_dim to end_dim into one.
  TENON_API Tensor forward(const Tensor& input);

  FlattenOptions options;
};
TENON_LIBRARY_MODULE(Flatten);

struct UnflattenOptions {
  using namedshape_t = std::vector<std::pair<std::string, std::int64_t>>;
  UnflattenOptions(std::int64_t dim, std::vector<std::int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  /// By name, for tensors whose dimensions have names. Tenon's have none: such a module prints and is saved, and its
  /// forward() throws Error.
  UnflattenOptions(std::string dimname, namedshape_t namedshape)
      : dimname_(std::move(dimname)), namedshape_(std::move(namedshape)) {}
  UnflattenOptions(const char* dimname, namedshape_t namedshape)
      : UnflattenOptions(std::string(dimname), std::move(namedshape)) {}
  TENON_ARG(std::int64_t, dim) = 0;             ///< which dim is cut
  TENON_ARG(std::vector<std::int64_t>, sizes);  ///< what the dim becomes
  TENON_ARG(std::string, dimname);              ///< a named dim: refused, there are none
  TENON_ARG(namedshape_t, namedshape);          ///< named sizes: refused, there are none
};

class TENON_EXPORT UnflattenImpl : public Cloneable<UnflattenImpl> {
 public:
  UnflattenImpl(std::int64_t dim, std::vector<std::int64_t> sizes)
      : UnflattenImpl(UnflattenOptions(dim, std::move(sizes))) {}
  UnflattenImpl(std::string dimname, UnflattenOptions::namedshape_t namedshape)
      : UnflattenImpl(UnflattenOptions(std::move(dimname), std::move(namedshape))) {}
  TENON_API explicit UnflattenImpl(UnflattenOptions options);
  void reset() override {}
  TENON_API void pretty_print(std::ostream& stream) const override;
  /// Splits one dim into the given sizes, of which one may be -1. Throws Error for a dim by name, and sizes that do not
  /// multiply up to it.
  TENON_API Tensor forward(const Tensor& input);

  UnflattenOptions options;
};
TENON_LIBRARY_MODULE(Unflatten);

}  // namespace tenon::nn
