// What is below the readers and writers, against plain models: bytes in and out through buffers, maps of ids, arrays.
#include "replay/support.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/pod_vector.h>

#include <gmock/gmock.h>

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// ---- output

std::string unzipped(const std::string& path) {
  const gzFile file = ::gzopen(path.c_str(), "rb");
  std::string all(4 * MiB, '\0');
  const int count = ::gzread(file, all.data(), static_cast<unsigned>(all.size()));
  ::gzclose(file);
  all.resize(static_cast<std::size_t>(std::max(count, 0)));
  return all;
}

TEST(OutputFiles, HoldWhatWasWrittenInWhateverPiecesAndOnlyOnceTheyAreClosed) {
  constexpr std::size_t kBuffer = 1 << 18;
  for (const char* name : {"out.bin", "out.bin.gz"})
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}, kBuffer - 1, kBuffer, kBuffer + 1, 3 * kBuffer}) {
      SCOPED_TRACE(testing::Message() << name << ", " << first);
      const std::string path = scratch(name);
      std::filesystem::remove(path);
      std::mt19937_64 random(first);
      std::string wanted;
      for (std::size_t i = 0; i < first; ++i) wanted += static_cast<char>(random() % 7);
      OutputFile out(path);
      EXPECT_EQ(out.path(), path);
      out.write(wanted);
      EXPECT_FALSE(std::filesystem::exists(path)) << "it is not whole";
      for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{10}, ~std::uint64_t{0}}) {
        out.number(number);
        out.put('\n');
        wanted += std::to_string(number) + "\n";
      }
      for (int i = 0; i < 200; ++i) {
        const std::string piece(random() % 3000, static_cast<char>('a' + i % 20));
        out.write(piece);
        wanted += piece;
      }
      out.close();
      EXPECT_EQ(unzipped(path) == wanted, true);
      EXPECT_EQ(content(path) == wanted, std::string(name) == "out.bin") << "compressed where the name says so";
      std::filesystem::remove(path);
    }
}

TEST(OutputFiles, ThatAreNotClosedOrCannotBeMadeLeaveNothing) {
  const std::string path = scratch("left");
  { OutputFile(path).write("half of it"); }
  EXPECT_FALSE(std::filesystem::exists(path));
  try {
    OutputFile(scratch("no_such_folder") + "/out");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no_such_folder/out"));
    EXPECT_THAT(error.what(), HasSubstr("No such file or directory"));
  }
}

// ---- input

/// Lines of drawn lengths, some of them longer than a buffer, some that end as Windows writes them.
std::string drawn_lines(std::mt19937_64& random) {
  std::string text;
  while (text.size() < 700 * KiB) {
    const std::size_t length = random() % 40 == 0 ? random() % (300 * KiB) : random() % 200;
    for (std::size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % 26);
    if (random() % 5 == 0) text += '\r';
    text += '\n';
  }
  return random() % 2 == 0 ? text : text + "the last one";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

void write_plain_and_gz(const std::string& bytes, const std::string& plain, const std::string& gz) {
  std::ofstream(plain, std::ios::binary) << bytes;
  const gzFile file = ::gzopen(gz.c_str(), "wb1");
  ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(file);
}

TEST(InputFiles, HaveEachLineWithItsNumberWhereverTheBuffersEnd) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 4; ++round) {
    const std::string text = drawn_lines(random), plain = scratch("lines"), gz = scratch("lines.gz");
    const std::vector<std::string> wanted = lines_of(text);
    write_plain_and_gz(text, plain, gz);
    for (const std::string& path : {plain, gz}) {
      InputFile file(path);
      std::string_view line;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_TRUE(file.line(line)) << i << " of " << wanted.size();
        ASSERT_TRUE(line == wanted[i]) << i << " of " << wanted.size();
        ASSERT_EQ(file.line_number(), i + 1);
      }
      EXPECT_FALSE(file.line(line));
      EXPECT_EQ(file.line_number(), wanted.size());
      EXPECT_EQ(file.position(), text.size());
      EXPECT_EQ(file.peek(), -1);
      EXPECT_EQ(file.get(), -1);
      EXPECT_TRUE(file.available().empty());
    }
  }
}

TEST(InputFiles, HaveLinesOfUpToAMebibyte) {
  const std::string path = scratch("long_line");
  for (const std::size_t length : {MiB - 1, MiB, MiB + 1})
    for (const bool has_end : {false, true}) {
      std::ofstream(path, std::ios::binary) << "first\n" << std::string(length, 'x') << (has_end ? "\nlast\n" : "");
      InputFile file(path);
      std::string_view line;
      ASSERT_TRUE(file.line(line));
      std::string refusal;
      try {
        EXPECT_TRUE(file.line(line));
        EXPECT_EQ(line.size(), length);
      } catch (const TraceError& error) {
        refusal = error.what();
      }
      EXPECT_EQ(refusal, length <= MiB ? "" : path + ":2: a line of more than a mebibyte: this is not a text history");
    }
}

TEST(InputFiles, AreTheSameBytesByWhateverCallTheyAreTaken) {
  std::mt19937_64 random(6);
  std::string bytes;
  for (int i = 0; i < 900'000; ++i) bytes += static_cast<char>(random() % 5);
  const std::string plain = scratch("bytes"), gz = scratch("bytes.gz");
  write_plain_and_gz(bytes, plain, gz);
  for (const std::string& path : {plain, gz}) {
    InputFile file(path);
    EXPECT_THAT(bytes, StartsWith(std::string(file.head())));
    std::size_t at = 0;
    std::string piece;
    while (at < bytes.size()) {
      ASSERT_EQ(file.position(), at);
      const std::size_t left = bytes.size() - at;
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(file.peek(), static_cast<unsigned char>(bytes[at]));
          ASSERT_EQ(file.get(), static_cast<unsigned char>(bytes[at]));
          ++at;
          break;
        case 1: {
          const std::string_view seen = file.available();
          ASSERT_FALSE(seen.empty());
          const std::size_t count = std::min<std::size_t>(seen.size(), random() % 3000);
          ASSERT_TRUE(seen.substr(0, count) == std::string_view(bytes).substr(at, count));
          file.consume(count);
          at += count;
          break;
        }
        default: {
          piece.assign(random() % 8 == 0 ? random() % 300'000 : random() % 5000, '?');
          const bool fits = piece.size() <= left;
          ASSERT_EQ(file.read(piece.data(), piece.size()), fits);
          if (!fits) piece.resize(left);
          ASSERT_TRUE(std::string_view(piece) == std::string_view(bytes).substr(at, piece.size()));
          at += piece.size();
        }
      }
    }
    EXPECT_EQ(file.position(), bytes.size());
    EXPECT_EQ(file.get(), -1);
    EXPECT_TRUE(file.read(nullptr, 0)) << "nothing is always there";
  }
}

// ---- maps and arrays

TEST(IdMaps, HoldWhatAnOrderedMapWouldHoweverManyCameAndWent) {
  for (const std::uint64_t spread : {1ULL, 512ULL, 4096ULL, 0x100000001ULL}) {
    std::mt19937_64 random(spread);
    IdMap map;
    std::map<std::uint64_t, std::uint32_t> wanted;
    EXPECT_EQ(map.find(0), nullptr);
    EXPECT_FALSE(map.erase(0));
    for (std::uint32_t step = 0; step < 20'000; ++step) {
      // Waves: for a while more comes than goes, then the other way round.
      const bool comes = random() % 100 < (step / 3000 % 2 == 0 ? 70U : 30U);
      const std::uint64_t key = random() % 50 == 0 ? IdMap::kErased - 1 - random() % 4 : (random() % 3000) * spread;
      std::uint32_t* const found = map.find(key);
      const auto known = wanted.find(key);
      ASSERT_EQ(found != nullptr, known != wanted.end()) << step;
      if (found != nullptr) {
        ASSERT_EQ(*found, known->second) << step;
      }
      if (comes && found == nullptr) {
        map.insert(key, step);
        wanted[key] = step;
      } else if (!comes) {
        ASSERT_EQ(map.erase(key), wanted.erase(key) != 0) << step;
      }
      ASSERT_EQ(map.size(), wanted.size());
    }
    std::map<std::uint64_t, std::uint32_t> visited;
    map.for_each([&](std::uint64_t key, std::uint32_t value) { EXPECT_TRUE(visited.emplace(key, value).second); });
    EXPECT_EQ(visited, wanted);
  }
}

TEST(PodVectors, HoldWhatAVectorWould) {
  std::mt19937_64 random(8);
  PodVector<std::uint64_t> vector;
  std::vector<std::uint64_t> wanted;
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t choice = random() % 8;
    if (choice < 4) {
      vector.push_back(random());
      wanted.push_back(vector.back());
    } else if (choice < 6) {
      std::vector<std::uint64_t> more(random() % (step % 100 == 0 ? 2000 : 20));
      for (std::uint64_t& value : more) value = random();
      vector.append(more.data(), more.size());
      wanted.insert(wanted.end(), more.begin(), more.end());
    } else if (choice == 6 && !wanted.empty()) {
      const std::size_t size = wanted.size() - random() % std::min<std::size_t>(wanted.size(), 30);
      vector.shrink(size);
      wanted.resize(size);
    } else {
      PodVector<std::uint64_t> moved(std::move(vector));
      EXPECT_EQ(vector.size(), 0u);  // NOLINT: it is as a new one
      if (random() % 2 == 0) vector.push_back(1);
      vector = std::move(moved);
    }
    ASSERT_EQ(vector.size(), wanted.size());
    if (wanted.empty()) continue;
    ASSERT_EQ(vector.back(), wanted.back());
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), vector.data())) << step;
  }
}

}  // namespace
}  // namespace tenon::replay
