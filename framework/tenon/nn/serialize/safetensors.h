// The safetensors format: tensors by name in one file, readable without running anything.
//
//   length (8 bytes, little-endian) | header: JSON, `length` bytes | the tensors' bytes, one after another
//   {"__metadata__": {"key": "text", …}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
#pragma once

#include <tenon/core/export.h>
#include <tenon/nn/containers/ordered_dict.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace tenon::nn {

struct TensorFile {
  OrderedDict<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Receives bytes in order.
using ByteSink = std::function<void(const void* data, std::size_t bytes)>;

/// Tensors are written contiguous, from any device.
TENON_API void write_safetensors(const TensorFile& file, const ByteSink& sink);

/// Throws Error that names `origin` and what is wrong: truncated, a header that is no such JSON, an unknown dtype,
/// offsets that overlap, leave holes or reach past the end, sizes that do not fit. Nothing in the bytes is believed
/// unchecked.
TENON_API TensorFile read_safetensors(std::span<const std::byte> bytes, const std::string& origin,
                                      std::optional<Device> device = std::nullopt);

/// A file, written beside its place and then renamed: a crash leaves the old one.
TENON_API void save_safetensors(const TensorFile& file, const std::string& path);
/// read_safetensors() of a whole file, its path as the origin; tensors are on `device` (the CPU if none is given).
/// Throws Error also for a file that cannot be opened.
TENON_API TensorFile load_safetensors(const std::string& path, std::optional<Device> device = std::nullopt);
/// As load_safetensors(), but the tensors are views of the file's bytes on the CPU, which they keep alive and no
/// allocator counts: they are there to be copied from.
TENON_API TensorFile view_safetensors(const std::string& path);

}  // namespace tenon::nn
