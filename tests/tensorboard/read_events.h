// Event files read back: by a parser of their own, so that writer and reader do not share a mistake.
#pragma once

#include <tenon/tensorboard/event_file.h>

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace tenon::test {

/// One protobuf field: its number, and its bytes or its number.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string bytes;
};

inline std::uint64_t varint(const std::string& text, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.at(at++));
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

inline std::vector<Field> fields(const std::string& message) {
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

/// The Event messages of a file; the checksums are verified. What follows the last whole record is left out.
inline std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> events;
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, file.data() + at, 4);
    return value;
  };
  for (std::size_t at = 0; at + 12 <= file.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, 8);
    if (at + 16 + length > file.size()) break;
    EXPECT_EQ(number(at + 8), tensorboard::masked_crc32c(file.substr(at, 8)));
    events.push_back(file.substr(at + 12, length));
    EXPECT_EQ(number(at + 12 + length), tensorboard::masked_crc32c(events.back()));
    at += 16 + length;
  }
  return events;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The bytes of the field of that number; fails where there is none.
inline std::string inside(const std::string& message, std::uint64_t number) {
  for (const Field& field : fields(message))
    if (field.number == number) return field.bytes;
  ADD_FAILURE() << "a message has no field " << number;
  return {};
}
/// The number in it.
inline std::uint64_t number_in(const std::string& message, std::uint64_t number) {
  for (const Field& field : fields(message))
    if (field.number == number) return field.value;
  return 0;  // what protobuf leaves out
}
inline double double_in(const std::string& message, std::uint64_t number) {
  return std::bit_cast<double>(number_in(message, number));
}
inline std::vector<double> doubles_in(const std::string& message, std::uint64_t number) {
  const std::string bytes = inside(message, number);
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(double));
  return values;
}

/// One Summary value with what its event says.
struct ReadValue {
  std::int64_t step = 0;
  double wall_time = 0;
  std::string tag, message;
  /// Of a scalar.
  float scalar() const { return std::bit_cast<float>(static_cast<std::uint32_t>(number_in(message, 2))); }
};

/// All values of the event files directly in a folder, those of one file in their order.
inline std::vector<ReadValue> values_in(const std::string& folder) {
  std::vector<ReadValue> values;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    for (const std::string& event : records(content_of(entry.path().string()))) {
      for (const Field& field : fields(event)) {
        if (field.number != 5) continue;  // Summary
        for (const Field& value : fields(field.bytes))
          values.push_back({static_cast<std::int64_t>(number_in(event, 2)), double_in(event, 1), inside(value.bytes, 1),
                            value.bytes});
      }
    }
  }
  return values;
}

}  // namespace tenon::test
