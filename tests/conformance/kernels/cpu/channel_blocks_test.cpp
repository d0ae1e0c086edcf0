// Pictures to blocks of channels and back, which are compiled into this program a second time: which of them the cpu's
// convolutions ask for is oneDNN's choice.
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

template <class T>
void hold_the_channels_of_each_place_and_go_back(std::int64_t block) {
  using Elements = std::vector<T>;
  const T untouched = static_cast<T>(0xA5A5);
  for (const std::int64_t pictures : {0, 1, 3}) {
    for (const std::int64_t channels : {1, 7, 8, 9, 12, 16, 24, 32, 37, 80}) {
      for (const std::int64_t plane : {1, 7, 8, 9, 15, 16, 17, 31, 32, 49}) {
        for (const std::int64_t gap : {0, 5}) {
          SCOPED_TRACE(testing::Message() << pictures << " x " << channels << " x " << plane << ", gap " << gap);
          const std::int64_t step = channels * plane + gap, whole = (channels + block - 1) / block;
          const ChannelBlocks shape{pictures, channels, plane, step, block, sizeof(T)};
          ASSERT_EQ(shape.picture_elements(), whole * plane * block);
          Elements plain(static_cast<std::size_t>(pictures * step), untouched), back(plain.size(), untouched),
              wanted(static_cast<std::size_t>(pictures * whole * plane * block), T(0)),
              blocks(wanted.size() + 16, untouched);
          std::uint16_t next = 0;
          for (std::int64_t n = 0; n < pictures; ++n) {
            for (std::int64_t c = 0; c < channels; ++c) {
              for (std::int64_t p = 0; p < plane; ++p) {
                next = static_cast<std::uint16_t>(next + 7);
                plain[static_cast<std::size_t>(n * step + c * plane + p)] = next;
                wanted[static_cast<std::size_t>(((n * whole + c / block) * plane + p) * block + c % block)] = next;
              }
            }
          }
          tenon::cpu::sse2::to_channel_blocks(blocks.data(), plain.data(), shape);
          ASSERT_EQ(Elements(blocks.begin(), blocks.end() - 16), wanted);
          ASSERT_EQ(Elements(blocks.end() - 16, blocks.end()), Elements(16, untouched));
          tenon::cpu::sse2::from_channel_blocks(back.data(), blocks.data(), shape);
          ASSERT_EQ(back, plain);
        }
      }
    }
  }
}

TEST(ChannelBlocks, HoldTheChannelsOfEachPlaceAndGoBack) {
  for (const std::int64_t block : {8, 16}) {
    SCOPED_TRACE(block);
    hold_the_channels_of_each_place_and_go_back<std::uint16_t>(block);
    hold_the_channels_of_each_place_and_go_back<float>(block);
  }
}

}  // namespace
