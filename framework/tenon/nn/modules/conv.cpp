// Convolutions: parameters and printing; the arithmetic is functional/conv.cpp.
#include <tenon/nn/modules/conv.h>

#include <tenon/nn/functional/conv.h>
#include <tenon/nn/init.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <cmath>
#include <ostream>

namespace tenon::nn {
namespace {

/// With a = sqrt(5) the bound is 1 / sqrt(fan_in), as in PyTorch.
void initialise(Tensor& weight, Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const auto [fan_in, fan_out] = init::_calculate_fan_in_and_fan_out(weight);
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  init::uniform_(bias, -bound, bound);
}

template <class Options>
void check_channels(const Options& options) {
  if (options.in_channels() <= 0 || options.groups() <= 0 || options.out_channels() <= 0) {
    throw Error("in_channels, groups and out_channels must be a positive integer.");
  }
  if (options.in_channels() % options.groups() != 0) throw Error("in_channels must be divisible by groups");
  if (options.out_channels() % options.groups() != 0) throw Error("out_channels must be divisible by groups");
}

/// The weight of sizes (first, second, kernel…) and the bias, drawn anew.
template <class Module>
void register_parameters(Module& module, std::int64_t first, std::int64_t second) {
  const auto& options = module.options;
  std::vector<std::int64_t> sizes{first, second};
  sizes.insert(sizes.end(), options.kernel_size().begin(), options.kernel_size().end());
  module.weight = module.register_parameter("weight", new_parameter(sizes));
  module.bias = options.bias() ? module.register_parameter("bias", new_parameter({options.out_channels()}))
                               : module.register_parameter("bias", {}, /*requires_grad=*/false);
  module.reset_parameters();
}

/// Of both kinds: what stands at the end of their names.
template <class Options>
void print_common_end(std::ostream& stream, const Options& options) {
  if (options.groups() != 1) stream << ", groups=" << options.groups();
  if (!options.bias()) stream << ", bias=" << options.bias();
  if (!options.padding_mode().template is<enumtype::kZeros>()) {
    stream << ", padding_mode=" << enumtype::get_enum_name(options.padding_mode());
  }
  stream << ")";
}

}  // namespace

template <std::size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(ConvOptions<D> given) : options(std::move(given)) {
  ConvNdImpl::reset();
}

template <std::size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset() {
  check_channels(options);
  if (options.padding().is_same() && !options.stride().all_equal(1)) {
    throw Error("padding='same' is not supported for strided convolutions");
  }
  register_parameters(*this, options.out_channels(), options.in_channels() / options.groups());
}

template <std::size_t D, class Derived>
void ConvNdImpl<D, Derived>::reset_parameters() {
  initialise(weight, bias);
}

template <std::size_t D, class Derived>
void ConvNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::Conv" << D << "d(" << options.in_channels() << ", " << options.out_channels()
         << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride();
  if (const auto* padding = options.padding().numbers()) {
    if (!padding->all_equal(0)) stream << ", padding=" << *padding;
  } else {
    stream << ", padding='" << (options.padding().is_same() ? "same" : "valid") << "'";
  }
  if (!options.dilation().all_equal(1)) stream << ", dilation=" << options.dilation();
  print_common_end(stream, options);
}

template <std::size_t D, class Derived>
Tensor ConvNdImpl<D, Derived>::forward(const Tensor& input) {
  const ModuleScope scope(*this);
  if (ForwardOverride* other = this->forward_override()) return other->forward(*this, input);
  return functional::detail::conv<D>(input, weight, bias, options.stride(), options.padding(), options.dilation(),
                                     options.groups(), options.padding_mode());
}

template <std::size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(ConvTransposeOptions<D> given) : options(std::move(given)) {
  ConvTransposeNdImpl::reset();
}

template <std::size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset() {
  check_channels(options);
  register_parameters(*this, options.in_channels(), options.out_channels() / options.groups());
}

template <std::size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::reset_parameters() {
  initialise(weight, bias);
}

template <std::size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << "tenon::nn::ConvTranspose" << D << "d(" << options.in_channels() << ", "
         << options.out_channels() << ", kernel_size=" << options.kernel_size() << ", stride=" << options.stride();
  if (!options.padding().all_equal(0)) stream << ", padding=" << options.padding();
  if (!options.dilation().all_equal(1)) stream << ", dilation=" << options.dilation();
  if (!options.output_padding().all_equal(0)) stream << ", output_padding=" << options.output_padding();
  print_common_end(stream, options);
}

template <std::size_t D, class Derived>
unsigned int ConvTransposeNdImpl<D, Derived>::_forward_num_required_args() {
  return 1;
}
template <std::size_t D, class Derived>
std::vector<AnyValue> ConvTransposeNdImpl<D, Derived>::_forward_populate_default_args(
    std::vector<AnyValue>&& arguments) {
  return detail::with_defaults(std::move(arguments), {{1, AnyValue(std::optional<std::vector<std::int64_t>>())}});
}

template <std::size_t D, class Derived>
Tensor ConvTransposeNdImpl<D, Derived>::forward(const Tensor& input,
                                                const std::optional<std::vector<std::int64_t>>& output_size) {
  const ModuleScope scope(*this);
  if (!options.padding_mode().template is<enumtype::kZeros>()) {
    throw Error("Only 'zeros' padding mode is supported for transposed convolutions");
  }
  ExpandingArray<D> output_padding = options.output_padding();
  if (output_size) {
    const std::size_t skip = output_size->size() == D + 2 ? 2 : 0;
    if (output_size->size() != D + skip) {
      throw Error(fmt::format("output_size must have {} or {} elements (got {})", D, D + 2, output_size->size()));
    }
    for (std::size_t d = 0; d < D; ++d) {
      const std::int64_t size = input.size(-static_cast<std::int64_t>(D - d));
      const std::int64_t smallest = (size - 1) * options.stride()[d] - 2 * options.padding()[d] +
                                    options.dilation()[d] * (options.kernel_size()[d] - 1) + 1;
      const std::int64_t wanted = (*output_size)[d + skip];
      if (wanted < smallest || wanted >= smallest + options.stride()[d]) {
        throw Error(fmt::format("requested an output size of {} in dimension {}, but valid sizes range from {} to {}",
                                wanted, d, smallest, smallest + options.stride()[d] - 1));
      }
      output_padding[d] = wanted - smallest;
    }
  }
  return functional::detail::conv_transpose<D>(input, weight, bias, options.stride(), options.padding(), output_padding,
                                               options.groups(), options.dilation());
}

template class ConvNdImpl<1, Conv1dImpl>;
template class ConvNdImpl<2, Conv2dImpl>;
template class ConvNdImpl<3, Conv3dImpl>;
template class ConvTransposeNdImpl<1, ConvTranspose1dImpl>;
template class ConvTransposeNdImpl<2, ConvTranspose2dImpl>;
template class ConvTransposeNdImpl<3, ConvTranspose3dImpl>;

template class Cloneable<Conv1dImpl>;
template class Cloneable<ConvTranspose1dImpl>;
template class Cloneable<Conv2dImpl>;
template class Cloneable<ConvTranspose2dImpl>;
template class Cloneable<Conv3dImpl>;
template class Cloneable<ConvTranspose3dImpl>;

}  // namespace tenon::nn
