// Dropout modules: active in training only.
#include <tenon/nn/modules/dropout.h>

#include <tenon/nn/functional/dropout.h>

#include <ostream>

namespace tenon::nn {

#define TENON_DROPOUT(Name, function)                                                                                 \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                                         \
    stream << std::boolalpha << "tenon::nn::" #Name "(p=" << options.p() << ", inplace=" << options.inplace() << ")"; \
  }                                                                                                                   \
  Tensor Name##Impl::forward(Tensor input) {                                                                          \
    const ModuleScope scope(*this);                                                                                   \
    return functional::detail::function(std::move(input), options.p(), is_training(), options.inplace());             \
  }
TENON_DROPOUT(Dropout, dropout)
TENON_DROPOUT(Dropout2d, dropout2d)
TENON_DROPOUT(Dropout3d, dropout3d)
TENON_DROPOUT(AlphaDropout, alpha_dropout)
TENON_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout)
#undef TENON_DROPOUT

template class Cloneable<DropoutImpl>;
template class Cloneable<Dropout2dImpl>;
template class Cloneable<Dropout3dImpl>;
template class Cloneable<AlphaDropoutImpl>;
template class Cloneable<FeatureAlphaDropoutImpl>;

}  // namespace tenon::nn
