// Order of dimensions, grid and scale as in PyTorch's SummaryWriter; libpng does the encoding.
#include <tenon/core/error.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensorboard/image.h>

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::tensorboard {

namespace {

constexpr std::int64_t kPicturesPerRow = 8;

void check_format(const Tensor& picture, std::string_view format) {
  std::string letters(format);
  std::ranges::sort(letters);
  if (letters != "CHW" && letters != "HW" && letters != "CHNW" && letters != "HNW") {
    throw Error(
        fmt::format("unknown order of an image's dimensions '{}'; each of H and W has to be named once, C for "
                    "channels and N for a batch at most once: \"CHW\", \"HWC\", \"HW\", \"NCHW\"",
                    format));
  }
  if (picture.dim() != static_cast<std::int64_t>(format.size())) {
    throw Error(fmt::format("an image in the order '{}' has {} dimensions, got a tensor of shape {}", format,
                            format.size(), to_string(picture.sizes())));
  }
  if (picture.numel() == 0) throw Error(fmt::format("an image of shape {} has no pixels", to_string(picture.sizes())));
}

/// The tensor in the order NHWC; a dimension that is not named has the size 1.
Tensor in_order(Tensor picture, std::string format) {
  for (const char letter : {'N', 'C'}) {
    if (format.find(letter) != std::string::npos) continue;
    picture = picture.unsqueeze(-1);
    format += letter;
  }
  std::vector<std::int64_t> order;
  for (const char letter : {'N', 'H', 'W', 'C'}) order.push_back(static_cast<std::int64_t>(format.find(letter)));
  return picture.permute(order);
}

/// One picture of them all: HWC. Places without one are black.
Tensor as_grid(const Tensor& pictures) {
  const std::int64_t count = pictures.size(0), height = pictures.size(1), width = pictures.size(2);
  if (count == 1) return pictures[0];
  const std::int64_t columns = std::min(count, kPicturesPerRow), rows = (count + columns - 1) / columns;
  Tensor grid = zeros({rows * height, columns * width, pictures.size(3)}, pictures.options());
  for (std::int64_t i = 0; i < count; ++i) {
    grid.narrow(0, i / columns * height, height).narrow(1, i % columns * width, width).copy_(pictures[i]);
  }
  return grid;
}

std::string encode_png(const Tensor& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(pixels.size(0));
  image.width = static_cast<png_uint_32>(pixels.size(1));
  image.format = pixels.size(2) == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  const auto attempt = [&](void* memory, png_alloc_size_t& bytes) {
    if (png_image_write_to_memory(&image, memory, &bytes, 0, pixels.data_ptr<std::uint8_t>(), 0, nullptr) == 0)
      throw Error(fmt::format("cannot encode an image of shape {}: {}", to_string(pixels.sizes()), image.message));
  };
  png_alloc_size_t bytes = 0;
  attempt(nullptr, bytes);
  std::string file(bytes, '\0');
  attempt(file.data(), bytes);
  file.resize(bytes);
  return file;
}

}  // namespace

EncodedImage encode_image(const Tensor& picture, std::string_view format) {
  const NoGradGuard no_grad;
  check_format(picture, format);
  Tensor pixels = as_grid(in_order(picture.detach().to(kCPU), std::string(format)));
  const std::int64_t channels = pixels.size(2);
  if (channels != 1 && channels != 3 && channels != 4) {
    throw Error(fmt::format("an image has 1, 3 or 4 channels, got {} (shape {} in the order '{}')", channels,
                            to_string(picture.sizes()), format));
  }
  if (channels == 1) pixels = pixels.expand({pixels.size(0), pixels.size(1), 3});
  if (pixels.scalar_type() != Dtype::kUInt8)
    pixels = pixels.to(Dtype::kFloat32).mul(255).nan_to_num(0).clamp(0, 255).to(Dtype::kUInt8);
  pixels = pixels.contiguous();
  return {.height = static_cast<int>(pixels.size(0)),
          .width = static_cast<int>(pixels.size(1)),
          .channels = static_cast<int>(pixels.size(2)),
          .png = encode_png(pixels)};
}

}  // namespace tenon::tensorboard
