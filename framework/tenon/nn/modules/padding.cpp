// Padding as modules.
#include <tenon/nn/modules/padding.h>

#include <tenon/nn/functional/pad.h>

#include <ostream>

namespace tenon::nn {

namespace {
template <std::size_t D>
Tensor padded(const Tensor& input, const ExpandingArray<D>& amounts, const functional::PadMode& mode,
              double value = 0) {
  return functional::pad(input, functional::PadFuncOptions(amounts.vec()).mode(mode).value(value));
}
}  // namespace

#define TENON_PAD_CLASS(Kind, D, mode)                                         \
  void Kind##D##dImpl::pretty_print(std::ostream& stream) const {              \
    stream << "tenon::nn::" #Kind #D "d(padding=" << options.padding() << ")"; \
  }                                                                            \
  Tensor Kind##D##dImpl::forward(const Tensor& input) {                        \
    const ModuleScope scope(*this);                                            \
    return padded(input, options.padding(), mode);                             \
  }
TENON_PAD_CLASS(ReflectionPad, 1, kReflect)
TENON_PAD_CLASS(ReflectionPad, 2, kReflect)
TENON_PAD_CLASS(ReflectionPad, 3, kReflect)
TENON_PAD_CLASS(ReplicationPad, 1, kReplicate)
TENON_PAD_CLASS(ReplicationPad, 2, kReplicate)
TENON_PAD_CLASS(ReplicationPad, 3, kReplicate)
TENON_PAD_CLASS(ZeroPad, 1, kConstant)
TENON_PAD_CLASS(ZeroPad, 2, kConstant)
TENON_PAD_CLASS(ZeroPad, 3, kConstant)
#undef TENON_PAD_CLASS

#define TENON_PAD_CLASS(D)                                                                                           \
  void ConstantPad##D##dImpl::pretty_print(std::ostream& stream) const {                                             \
    stream << "tenon::nn::ConstantPad" #D "d(padding=" << options.padding() << ", value=" << options.value() << ")"; \
  }                                                                                                                  \
  Tensor ConstantPad##D##dImpl::forward(const Tensor& input) {                                                       \
    const ModuleScope scope(*this);                                                                                  \
    return padded(input, options.padding(), kConstant, options.value());                                             \
  }
TENON_PAD_CLASS(1)
TENON_PAD_CLASS(2)
TENON_PAD_CLASS(3)
#undef TENON_PAD_CLASS

template class Cloneable<ReflectionPad1dImpl>;
template class Cloneable<ReflectionPad2dImpl>;
template class Cloneable<ReflectionPad3dImpl>;
template class Cloneable<ReplicationPad1dImpl>;
template class Cloneable<ReplicationPad2dImpl>;
template class Cloneable<ReplicationPad3dImpl>;
template class Cloneable<ZeroPad1dImpl>;
template class Cloneable<ZeroPad2dImpl>;
template class Cloneable<ZeroPad3dImpl>;
template class Cloneable<ConstantPad1dImpl>;
template class Cloneable<ConstantPad2dImpl>;
template class Cloneable<ConstantPad3dImpl>;

}  // namespace tenon::nn
