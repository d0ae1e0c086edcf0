// Further libtorch spellings, for programs that use them.
#pragma once

#include <tenon/tensor/shape/indexing.h>
#include <tenon/tensor/tensor.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace tenon {

using std::make_unique;
using std::nullopt;
using std::nullopt_t;
using std::optional;

/// "Contiguous", "ChannelsLast", …
inline std::ostream& operator<<(std::ostream& stream, MemoryFormat format) {
  constexpr const char* kNames[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return stream << kNames[static_cast<int>(format)];
}

/// "[1, 2, 3]", for programs that print sizes they keep in a vector.
template <class T>
requires std::is_arithmetic_v<T> std::ostream& operator<<(std::ostream& stream, const std::vector<T>& items) {
  stream << "[";
  for (std::size_t i = 0; i < items.size(); ++i) stream << (i ? ", " : "") << items[i];
  return stream << "]";
}

using TensorBase = Tensor;
using Dimname = std::string;

}  // namespace tenon
