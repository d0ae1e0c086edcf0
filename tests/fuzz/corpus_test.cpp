// What the fuzzers found once stays found: each input of the corpus goes through its fuzz target, which accepts or
// refuses it.
#include <tenon/replay/formats/format.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

// One target for each format that is read, and the others: fuzz/targets.cmake.
#define ROW(name) extern "C" int tenon_fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "fuzz_targets.inc"
#undef ROW

namespace tenon {
namespace {

struct FuzzTarget {
  std::string name;
  int (*run)(const std::uint8_t*, std::size_t);
};

const std::vector<FuzzTarget> kTargets = {
#define ROW(name) {#name, tenon_fuzz_##name},
#include "fuzz_targets.inc"
#undef ROW
};

void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.name; }

class FuzzCorpus : public testing::TestWithParam<FuzzTarget> {};

// Every file, and every input that one byte less or one flipped byte makes of it.
TEST_P(FuzzCorpus, IsReadOrRefused) {
  const FuzzTarget& target = GetParam();
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/fuzz/corpus/" + target.name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    SCOPED_TRACE(entry.path().string());
    const auto run = [&](std::size_t size) {
      // A copy of exactly this size, so that a reader that looks past the end is seen to.
      const std::vector<std::uint8_t> input(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NO_THROW(EXPECT_EQ(target.run(input.data(), input.size()), 0));
    };
    run(bytes.size());
    ++inputs;
    if (bytes.size() > 4096) continue;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      run(i);
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
      run(bytes.size());
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    }
  }
  EXPECT_GT(inputs, 0u) << "no corpus for " << target.name;
}

INSTANTIATE_TEST_SUITE_P(OfEvery, FuzzCorpus, testing::ValuesIn(kTargets),
                         [](const auto& target) { return target.param.name; });

TEST(FuzzTargets, EveryFormatThatIsReadIsFuzzed) {
  for (const replay::Format* const format : replay::formats()) {
    const bool is_fuzzed = std::ranges::find(kTargets, format->name, &FuzzTarget::name) != kTargets.end();
    EXPECT_EQ(is_fuzzed, format->read != nullptr) << format->name << ": its inputs go to fuzz/corpus/" << format->name;
  }
}

}  // namespace
}  // namespace tenon
