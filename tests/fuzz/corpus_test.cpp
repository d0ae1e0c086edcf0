// What the fuzzers found once stays found: each input of the corpus goes through its reader, which accepts or refuses
// it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" {
int tenon_fuzz_binary(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_chrome(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_gz(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_minimalloc(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_rmm(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_snapshot(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_text(const std::uint8_t* data, std::size_t size);
int tenon_fuzz_toml(const std::uint8_t* data, std::size_t size);
}

namespace tenon {
namespace {

using Target = int (*)(const std::uint8_t*, std::size_t);

/// Runs every file of a corpus, and every input that one byte less or one flipped byte makes of it.
void run_corpus(const std::string& format, Target target) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIR "/fuzz/corpus/" + format)) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    SCOPED_TRACE(entry.path().string());
    const auto run = [&](std::size_t size) {
      // A copy of exactly this size, so that a reader that looks past the end is seen to.
      const std::vector<std::uint8_t> input(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_NO_THROW(EXPECT_EQ(target(input.data(), input.size()), 0));
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
  EXPECT_GT(inputs, 0u) << "no corpus for " << format;
}

TEST(FuzzCorpus, BinaryTracesAreReadOrRefused) { run_corpus("binary", tenon_fuzz_binary); }
TEST(FuzzCorpus, ChromeTracesAreReadOrRefused) { run_corpus("chrome", tenon_fuzz_chrome); }
TEST(FuzzCorpus, GzFilesAreReadOrRefused) { run_corpus("gz", tenon_fuzz_gz); }
TEST(FuzzCorpus, MinimallocProblemsAreReadOrRefused) { run_corpus("minimalloc", tenon_fuzz_minimalloc); }
TEST(FuzzCorpus, RmmLogsAreReadOrRefused) { run_corpus("rmm", tenon_fuzz_rmm); }
TEST(FuzzCorpus, SnapshotsAreReadOrRefused) { run_corpus("snapshot", tenon_fuzz_snapshot); }
TEST(FuzzCorpus, TextTracesAreReadOrRefused) { run_corpus("text", tenon_fuzz_text); }
TEST(FuzzCorpus, ConfigurationsAreReadOrRefused) { run_corpus("toml", tenon_fuzz_toml); }

}  // namespace
}  // namespace tenon
