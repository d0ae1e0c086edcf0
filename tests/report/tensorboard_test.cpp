// TensorBoard files: read back by a parser of their own, and held against figures from the formats' documents.
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/report/run/tensorboard.h>

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace tenon {
namespace {

/// One protobuf field: its number, and its bytes or its number.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string bytes;
};

std::uint64_t varint(const std::string& text, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.at(at++));
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> fields(const std::string& message) {
  std::vector<Field> all;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = varint(message, at);
    Field field{.number = key >> 3};
    const std::size_t fixed = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : 0;
    if (fixed != 0) {
      std::memcpy(&field.value, message.substr(at, fixed).data(), fixed);
      at += fixed;
    } else if ((key & 7) == 0) {
      field.value = varint(message, at);
    } else {
      const std::uint64_t length = varint(message, at);
      field.bytes = message.substr(at, length);
      at += length;
    }
    all.push_back(field);
  }
  return all;
}

/// The Event messages of a file; the checksums are verified.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> events;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, file.data() + at, 4);
    return value;
  };
  for (std::size_t at = 0; at + 12 <= file.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, 8);
    EXPECT_EQ(number(at + 8), masked_crc32c(file.substr(at, 8)));
    events.push_back(file.substr(at + 12, length));
    EXPECT_EQ(number(at + 12 + length), masked_crc32c(events.back()));
    at += 16 + length;
  }
  return events;
}

class Tensorboard : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string folder_ = test::scratch_folder() + "tensorboard";
};

TEST_F(Tensorboard, TheChecksumIsMaskedCrc32c) {
  // RFC 3720, B.4: 32 bytes of zeros give 8a9136aa, of ones 62a8ab43; "123456789" gives e3069283.
  const auto unmasked = [](std::string_view text) {
    const std::uint32_t masked = masked_crc32c(text) - 0xa282ead8U;
    return std::rotl(masked, 15);
  };
  EXPECT_EQ(unmasked(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(unmasked(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(unmasked("123456789"), 0xe3069283U);
}

TEST_F(Tensorboard, AFileHoldsItsVersionAndTheScalars) {
  TensorboardWriter writer(folder_);
  writer.add(7, {{"train/loss", 0.5}, {"memory/reserved_bytes", 1e9}}, 1234.5);
  writer.add(300, {{"train/loss", 0.25}});
  writer.flush();
  const std::vector<std::string> events = records(content(writer.path()));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(fields(events[0]).at(1).number, 3u);
  EXPECT_EQ(fields(events[0]).at(1).bytes, "brain.Event:2");
  const std::vector<Field> event = fields(events[1]);
  ASSERT_EQ(event.size(), 3u);
  EXPECT_EQ(std::bit_cast<double>(event[0].value), 1234.5);
  EXPECT_EQ(event[1].number, 2u);
  EXPECT_EQ(event[1].value, 7u);
  const std::vector<Field> values = fields(event[2].bytes);
  ASSERT_EQ(values.size(), 2u);
  const std::vector<Field> loss = fields(values[0].bytes);
  EXPECT_EQ(loss.at(0).bytes, "train/loss");
  EXPECT_EQ(std::bit_cast<float>(static_cast<std::uint32_t>(loss.at(1).value)), 0.5f);
  EXPECT_EQ(fields(events[2]).at(1).value, 300u);
}

TEST_F(Tensorboard, TheNameIsOneThatTensorboardLooksFor) {
  const TensorboardWriter writer(folder_);
  EXPECT_NE(writer.path().find("/events.out.tfevents."), std::string::npos);
}

TEST_F(Tensorboard, AFolderThatCannotBeMadeIsSaid) { EXPECT_THROW(TensorboardWriter("/proc/no/such"), Error); }

}  // namespace
}  // namespace tenon
