// The levels of vector instructions do not leak into each other: see Note [One definition per level] in the cpu plugin.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

std::vector<std::string> lines_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return lines;
  std::string text;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
  ::pclose(pipe);
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

// A weak symbol that two levels define is merged by the linker, and everybody gets one level's code.
TEST(CpuLevels, ShareNoWeakFunctions) {
  if (std::string(TENON_SANITIZERS) != "") GTEST_SKIP() << "sanitizers add symbols of their own";
  int objects = 0;
  for (const std::string level : {"sse2", "avx2", "avx512"}) {
    const std::filesystem::path folder = TENON_BINARY_DIR "/plugins/cpu/CMakeFiles/tenon_cpu_" + level + ".dir/kernels";
    ASSERT_TRUE(std::filesystem::exists(folder)) << folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".o") continue;
      ++objects;
      for (const std::string& line : lines_of("nm " + entry.path().string())) {
        // ADDRESS W NAME: weak functions. Data (V, u) is the same at every level.
        const bool weak = line.size() > 19 && (line[17] == 'W' || line[17] == 'w') && line[0] != ' ';
        if (!weak) continue;
        EXPECT_NE(line.find(level), std::string::npos) << entry.path().filename() << " defines " << line.substr(19);
      }
    }
  }
  EXPECT_GT(objects, 30);
}

}  // namespace
