// save() and load() of anything that archives hold: tensors, lists of tensors, modules, optimisers, samplers; to a
// file, a stream, or functions that take and give bytes.
#pragma once

#include <tenon/memory/purpose.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/module.h>
#include <tenon/nn/serialize/archive.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace tenon {

inline OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
inline InputArchive& operator>>(InputArchive& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}
template <class M>
requires std::is_base_of_v<nn::Module, M> OutputArchive& operator<<(OutputArchive& archive,
                                                                    const std::shared_ptr<M>& module) {
  if (module == nullptr) throw Error("Cannot serialize empty module");
  module->save(archive);
  return archive;
}
template <class M>
requires std::is_base_of_v<nn::Module, M> InputArchive& operator>>(InputArchive& archive,
                                                                   const std::shared_ptr<M>& module) {
  if (module == nullptr) throw Error("Cannot deserialize empty module");
  module->load(archive);
  return archive;
}
template <class M>
OutputArchive& operator<<(OutputArchive& archive, const nn::ModuleHolder<M>& holder) {
  return archive << holder.ptr();
}
template <class M>
InputArchive& operator>>(InputArchive& archive, const nn::ModuleHolder<M>& holder) {
  return archive >> holder.ptr();
}
/// Whatever has save(OutputArchive&) const and load(InputArchive&): optimisers, samplers.
template <class T>
concept Archivable = requires(const T& a, T& b, OutputArchive& out, InputArchive& in) {
  a.save(out);
  b.load(in);
};
template <Archivable T>
OutputArchive& operator<<(OutputArchive& archive, const T& value) {
  value.save(archive);
  return archive;
}
template <Archivable T>
InputArchive& operator>>(InputArchive& archive, T& value) {
  value.load(archive);
  return archive;
}

/// save(module, "model.safetensors"), save(tensor, stream)
template <class Value, class... To>
void save(const Value& value, To&&... to) {
  OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class... To>
void save(const std::vector<Tensor>& tensors, To&&... to) {
  OutputArchive archive;
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.save_to(std::forward<To>(to)...);
}
namespace detail {
/// What memory is for that is read for a Value.
template <class Value>
Purpose purpose_of_loaded(const Value& value) {
  if constexpr (
      requires { value->named_parameters(); } || requires { value.named_parameters(); })
    return Purpose::kParameter;
  else if constexpr (requires { value.param_groups(); })
    return Purpose::kOptimizerState;
  else
    return current_purpose();
}
}  // namespace detail

/// load(module, "model.safetensors"), load(tensor, stream, device): behind the value stands what load_from() of an
/// InputArchive takes. A defined tensor, hence every parameter and buffer, stays on its device, where libtorch takes
/// the archive's. Undefined tensors and the states of optimisers come on the archive's, which is the CPU unless one is
/// given.
template <class Value, class... From>
void load(Value& value, From&&... from) {
  const PurposeGuard purpose(detail::purpose_of_loaded(value));
  InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}
/// Appends every tensor that save() wrote of a vector, on the device given, else on the CPU.
template <class... From>
void load(std::vector<Tensor>& tensors, From&&... from) {
  InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  Tensor tensor;
  for (std::size_t i = 0; archive.try_read(std::to_string(i), tensor); ++i, tensor.reset()) tensors.push_back(tensor);
}

}  // namespace tenon
