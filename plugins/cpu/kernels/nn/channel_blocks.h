// Pictures of 16 bits between rows by channel, as ours lie, and blocks of 16 channels, as oneDNN's convolutions read
// them.
#pragma once

#include <cstdint>

namespace tenon::cpu {

/// Pictures (pictures, channels, plane). Plain, a channel's plane is contiguous and a picture begins `plain_step`
/// elements after the one before; in blocks, 16 channels of an element lie together: (pictures, channels / 16, plane,
/// 16), dense.
struct ChannelBlocks {
  static constexpr std::int64_t kChannels = 16;
  std::int64_t pictures = 0, channels = 0, plane = 0, plain_step = 0;
};

}  // namespace tenon::cpu
