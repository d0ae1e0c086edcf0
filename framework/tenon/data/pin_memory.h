// Pinning a batch: every tensor in it moves to page-locked host memory, whatever the batch is made of.
#pragma once

#include <tenon/data/example.h>
#include <tenon/memory/purpose.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::data {

template <class T>
struct Pinning {
  /// As in PyTorch: what has a pin_memory() of its own is replaced by its result, anything else stays as it is.
  static void apply(T& value, Device device) {
    if constexpr (requires { value = value.pin_memory(device); })
      value = value.pin_memory(device);
    else if constexpr (requires { value = value.pin_memory(); })
      value = value.pin_memory();
  }
};

/// Moves the tensors in `value`, a batch, to host memory that is page-locked for `device`, in place. They count as
/// data.
template <class T>
void pin_memory(T& value, Device device) {
  const PurposeGuard data(Purpose::kData);
  Pinning<T>::apply(value, device);
}

template <>
struct Pinning<Tensor> {
  static void apply(Tensor& tensor, Device device) {
    if (tensor.defined()) tensor = tensor.pin_memory(device);
  }
};
template <class Data, class Target>
struct Pinning<Example<Data, Target>> {
  static void apply(Example<Data, Target>& example, Device device) {
    Pinning<Data>::apply(example.data, device);
    Pinning<Target>::apply(example.target, device);
  }
};
template <class Data>
struct Pinning<Example<Data, example::NoTarget>> {
  static void apply(Example<Data, example::NoTarget>& example, Device device) {
    Pinning<Data>::apply(example.data, device);
  }
};
template <class T>
struct Pinning<std::optional<T>> {
  static void apply(std::optional<T>& value, Device device) {
    if (value) Pinning<T>::apply(*value, device);
  }
};
template <class T, class Allocator>
struct Pinning<std::vector<T, Allocator>> {
  static void apply(std::vector<T, Allocator>& values, Device device) {
    if constexpr (!std::is_same_v<T, bool>)
      for (T& value : values) Pinning<T>::apply(value, device);
  }
};
template <class Key, class T>
struct Pinning<std::map<Key, T>> {
  static void apply(std::map<Key, T>& values, Device device) {
    for (auto& [key, value] : values) Pinning<T>::apply(value, device);
  }
};
template <class Key, class T>
struct Pinning<std::unordered_map<Key, T>> {
  static void apply(std::unordered_map<Key, T>& values, Device device) {
    for (auto& [key, value] : values) Pinning<T>::apply(value, device);
  }
};
template <class First, class Second>
struct Pinning<std::pair<First, Second>> {
  static void apply(std::pair<First, Second>& values, Device device) {
    Pinning<First>::apply(values.first, device);
    Pinning<Second>::apply(values.second, device);
  }
};
template <class... Types>
struct Pinning<std::tuple<Types...>> {
  static void apply(std::tuple<Types...>& values, Device device) {
    std::apply([&](Types&... each) { (Pinning<Types>::apply(each, device), ...); }, values);
  }
};

/// Where the batches of a loader with the option pin_memory go: the named device's page-locked memory (Error if it has
/// none), or pinned_memory_device()'s, and empty, with a warning, where no device has any: as in PyTorch.
TENON_API std::optional<Device> pinning_of_batches(const std::string& device);

}  // namespace tenon::data
