// Pictures between rows by channel, as ours lie, and blocks of channels, as oneDNN's convolutions read them.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// Pictures (pictures, channels, plane). Plain, a channel's plane is contiguous and a picture begins `plain_step`
/// elements after the one before; in blocks, `block` channels of an element lie together: (pictures, blocks(), plane,
/// block), dense. What the last block has beyond the channels is 0.
struct ChannelBlocks {
  std::int64_t pictures = 0, channels = 0, plane = 0, plain_step = 0;
  std::int64_t block = 16;         ///< 16, or 8
  std::int64_t element_bytes = 2;  ///< 2 or 4
  std::int64_t blocks() const { return (channels + block - 1) / block; }
  /// Elements of a picture in blocks.
  std::int64_t picture_elements() const { return blocks() * plane * block; }
};

}  // namespace tenon::cpu
