// Further libtorch spellings, for programs that use them.
#pragma once

#include <tenon/tensor/indexing.h>
#include <tenon/tensor/tensor.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <variant>

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

using TensorBase = Tensor;
using Dimname = std::string;

}  // namespace tenon
