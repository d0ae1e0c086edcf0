// Labelled pictures in host memory, as the files have them: one byte a pixel. MNIST and Fashion-MNIST.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {

struct ImageSet {
  std::int64_t count = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< count * height * width
  std::vector<std::uint8_t> labels;  ///< count, below `classes`
  int classes = 10;
};

enum class Split { kTrain, kTest };

/// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

/// Throws what read_mnist does where the folder or one of its files is missing; reads none of them.
TENON_API void check_mnist(const std::string& folder, Split split);

/// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte, with or without .gz, from a folder. Throws Error that names the
/// file and, where the folder itself is missing, the package to install; also for a label of 10 or more and for counts
/// that differ.
TENON_API ImageSet read_mnist(const std::string& folder, Split split);

}  // namespace tenon::data
