// IDX files made for tests, gzipped or not, right or wrong.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tenon::test {

inline std::string idx_bytes(std::vector<std::uint32_t> sizes, std::size_t body, std::uint8_t type = 0x08) {
  std::string bytes{'\0', '\0', static_cast<char>(type), static_cast<char>(sizes.size())};
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(size >> shift & 0xff));
  }
  for (std::size_t i = 0; i < body; ++i) bytes.push_back(static_cast<char>(i % 10));
  return bytes;
}

inline std::string gzipped(const std::string& bytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tenon_gz_" + std::to_string(::getpid()))).string();
  gzFile file = gzopen(path.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  gzclose(file);
  std::ifstream stream(path, std::ios::binary);
  std::string packed((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  std::filesystem::remove(path);
  return packed;
}

/// A folder that goes away with the test.
class TemporaryFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("tenon_data_" + std::to_string(::getpid()) + "_" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return folder / name;
  }

  std::filesystem::path folder;
};

}  // namespace tenon::test
