// Functional dropout: the operators, in place where the options say so.
#include <tenon/nn/functional/dropout.h>

#include <tenon/ops/nn/dropout.h>

namespace tenon::nn::functional {

namespace detail {
Tensor dropout(Tensor input, double p, bool training, bool inplace) {
  return inplace ? tenon::dropout_(input, p, training) : tenon::dropout(input, p, training);
}
Tensor dropout2d(Tensor input, double p, bool training, bool inplace) {
  return inplace ? tenon::feature_dropout_(input, p, training) : tenon::feature_dropout(input, p, training);
}
Tensor dropout3d(Tensor input, double p, bool training, bool inplace) {
  return dropout2d(std::move(input), p, training, inplace);
}
Tensor alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return inplace ? tenon::alpha_dropout_(input, p, training) : tenon::alpha_dropout(input, p, training);
}
Tensor feature_alpha_dropout(Tensor input, double p, bool training, bool inplace) {
  return inplace ? tenon::feature_alpha_dropout_(input, p, training) : tenon::feature_alpha_dropout(input, p, training);
}
}  // namespace detail

Tensor dropout(Tensor input, const DropoutFuncOptions& o) {
  return detail::dropout(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& o) {
  return detail::dropout2d(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& o) {
  return detail::dropout3d(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& o) {
  return detail::alpha_dropout(std::move(input), o.p(), o.training(), o.inplace());
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& o) {
  return detail::feature_alpha_dropout(std::move(input), o.p(), o.training(), o.inplace());
}

}  // namespace tenon::nn::functional
