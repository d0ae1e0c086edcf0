// Pictures of 16 bits to blocks of 16 channels and back, which are compiled into this program a second time: the cpu's
// convolutions ask for them only where oneDNN multiplies 16 bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/nn/channel_blocks.h"

namespace tenon::cpu::sse2 {
void to_channel_blocks(void* blocks, const void* plain, const ChannelBlocks& shape);
void from_channel_blocks(void* plain, const void* blocks, const ChannelBlocks& shape);
}  // namespace tenon::cpu::sse2

namespace {

using tenon::cpu::ChannelBlocks;
using Elements = std::vector<std::uint16_t>;
constexpr std::uint16_t kUntouched = 0xA5A5;

TEST(ChannelBlocks, HoldSixteenChannelsOfEachPlaceAndGoBack) {
  for (const std::int64_t pictures : {0, 1, 3}) {
    for (const std::int64_t channels : {16, 32, 80}) {
      for (const std::int64_t plane : {1, 15, 16, 17, 31, 32, 49}) {
        for (const std::int64_t gap : {0, 5}) {
          SCOPED_TRACE(testing::Message() << pictures << " x " << channels << " x " << plane << ", gap " << gap);
          const std::int64_t step = channels * plane + gap;
          const ChannelBlocks shape{pictures, channels, plane, step};
          Elements plain(static_cast<std::size_t>(pictures * step), kUntouched), back(plain.size(), kUntouched),
              wanted(static_cast<std::size_t>(pictures * channels * plane)), blocks(wanted.size() + 16, kUntouched);
          std::uint16_t next = 0;
          for (std::int64_t n = 0; n < pictures; ++n) {
            for (std::int64_t c = 0; c < channels; ++c) {
              for (std::int64_t p = 0; p < plane; ++p) {
                next = static_cast<std::uint16_t>(next + 7);
                plain[static_cast<std::size_t>(n * step + c * plane + p)] = next;
                wanted[static_cast<std::size_t>(((n * (channels / 16) + c / 16) * plane + p) * 16 + c % 16)] = next;
              }
            }
          }
          tenon::cpu::sse2::to_channel_blocks(blocks.data(), plain.data(), shape);
          ASSERT_EQ(Elements(blocks.begin(), blocks.end() - 16), wanted);
          ASSERT_EQ(Elements(blocks.end() - 16, blocks.end()), Elements(16, kUntouched));
          tenon::cpu::sse2::from_channel_blocks(back.data(), blocks.data(), shape);
          ASSERT_EQ(back, plain);
        }
      }
    }
  }
}

}  // namespace
