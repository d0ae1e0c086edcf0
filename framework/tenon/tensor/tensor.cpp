// Tensor: what concerns layout only.
#include <tenon/tensor/factory.h>
#include <tenon/tensor/tensor.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <sstream>

namespace tenon {

void Tensor::undefined() { throw Error("tensor does not have a device, sizes or data: it is undefined"); }

void Tensor::check_accessor(std::size_t dims, bool on_host) const {
  if (static_cast<std::int64_t>(dims) != dim()) {
    throw Error("TensorAccessor expected " + std::to_string(dims) + " dims but tensor has " + std::to_string(dim()));
  }
  if (on_host && !is_cpu()) {
    throw Error("accessor() needs a tensor in the host's memory, but this one is on " + device().str() +
                "; use packed_accessor64() there, or a copy of it: .cpu()");
  }
}

void Tensor::check_packed32() const {
  if (numel() > std::numeric_limits<std::int32_t>::max()) {
    throw Error("numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64 (numel is " +
                std::to_string(numel()) + ")");
  }
}

void Tensor::wrong_type(Dtype wanted) const {
  throw Error(std::string("expected scalar type ") + tenon::toString(wanted) + " but found " +
              tenon::toString(scalar_type()));
}

std::int64_t Tensor::size(std::int64_t dim) const { return impl().sizes()[wrap_dim(dim, impl().rank(), false)]; }
std::int64_t Tensor::stride(std::int64_t dim) const { return impl().strides()[wrap_dim(dim, impl().rank(), false)]; }

bool Tensor::is_contiguous(MemoryFormat format) const {
  const TensorImpl& tensor = impl();
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    if (tensor.rank() != (format == MemoryFormat::ChannelsLast ? 4 : 5)) return false;
    const Dims expected = channels_last_strides(tensor.sizes());
    for (int i = 0; i < tensor.rank(); ++i) {
      if (tensor.sizes()[i] != 1 && tensor.strides()[i] != expected[i]) return false;
    }
    return true;
  }
  return tensor.is_contiguous();
}

namespace {

/// Whether channels lie innermost. Unlike is_contiguous(format) strides of dimensions of size 1 count, too, as in
/// PyTorch: where they alone speak against it, the tensor is no picture.
bool is_channels_last(const Dims& sizes, const Dims& strides) {
  if (strides[1] == 0) return false;
  std::int64_t least = 0;
  for (int i = 0; i < sizes.rank(); ++i) {
    const int dim = i == 0 ? 1 : (i + 1 < sizes.rank() ? sizes.rank() - i : 0);  // channels, width, …, samples
    if (sizes[dim] == 0 || strides[dim] < least) return false;
    if (dim == 0 && least == strides[1]) return false;
    least = strides[dim] * std::max<std::int64_t>(sizes[dim], 1);
  }
  return true;
}

}  // namespace

MemoryFormat Tensor::suggest_memory_format() const {
  const int rank = impl().rank();
  if ((rank == 4 || rank == 5) && is_channels_last(impl().sizes(), impl().strides())) {
    return rank == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  }
  return MemoryFormat::Contiguous;
}

std::int64_t Tensor::current_version() const {
  if (is_inference()) throw Error("Inference tensors do not track version counter.");
  return impl().version();
}

std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  std::string type(device().type().name());
  for (char& letter : type) letter = static_cast<char>(letter - ('a' <= letter && letter <= 'z' ? 32 : 0));
  return type + tenon::toString(scalar_type()) + "Type";
}

void Tensor::record_stream(StreamRef stream) const { impl().storage().record_stream(stream); }

void Tensor::print() const {
  if (!defined()) {
    std::cerr << "[UndefinedTensor]" << std::endl;
  } else {
    std::cerr << "[" << toString() << " " << sizes() << "]" << std::endl;
  }
}

std::ostream& operator<<(std::ostream& stream, const TensorOptions& options) {
  const auto flag = [](bool set, bool value) {
    return std::string(value ? "true" : "false") + (set ? "" : " (default)");
  };
  stream << "TensorOptions(dtype=" << options.dtype() << (options.has_dtype() ? "" : " (default)")
         << ", device=" << options.device() << (options.has_device() ? "" : " (default)")
         << ", layout=" << options.layout() << (options.has_layout() ? "" : " (default)")
         << ", requires_grad=" << flag(options.has_requires_grad(), options.requires_grad())
         << ", pinned_memory=" << flag(options.pinned_memory_opt().has_value(), options.pinned_memory())
         << ", memory_format=";
  if (options.has_memory_format()) {
    constexpr const char* kNames[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
    return stream << kNames[static_cast<int>(*options.memory_format_opt())] << ")";
  }
  return stream << "(nullopt))";
}

}  // namespace tenon
