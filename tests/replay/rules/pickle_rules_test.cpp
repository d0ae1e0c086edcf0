// Pickles that are drawn: values of every kind, written by each operator that can write them, are read as they were;
// equal containers are kept once; and a file that is no history is told by its first bytes.
#include "replay/support.h"

#include <tenon/replay/formats/pytorch/pickle/pickle.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::replay {
namespace {

using Kind = PickleValue::Kind;
using namespace std::string_literals;
__extension__ using Wide = __int128;

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}
char byte_of(int code) { return static_cast<char>(code); }

Pickle unpickled(const std::string& body) {
  const std::string text = "\x80\x04"s + body + ".";
  InputFile input("file", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return Pickle(input);
}

// --- integers -------------------------------------------------------------------------------------------------------

/// What is read of an integer: "7", or "too big".
std::string read_integer(const std::string& body) {
  const Pickle pickle = unpickled(body);
  bool is_signed = false, is_unsigned = false;
  const std::int64_t negative = pickle.signed_int(pickle.root(), is_signed);
  const std::uint64_t positive = pickle.unsigned_int(pickle.root(), is_unsigned);
  if (is_signed && is_unsigned) {
    EXPECT_EQ(static_cast<std::uint64_t>(negative), positive);
  }
  if (is_unsigned) return std::to_string(positive);
  if (is_signed) return std::to_string(negative);
  EXPECT_EQ(pickle.root().kind(), Kind::kTooBig);
  return "too big";
}

std::string bytes_of(Wide value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> std::min(8 * i, 127)));
  return text;
}

TEST(PickleIntegers, AreReadOfAnyNumberOfBytesAsLongAsTheyFitSixtyFourBits) {
  std::vector<Wide> values;
  for (const int bits : {0, 1, 7, 8, 15, 16, 31, 32, 55, 56, 58, 59, 60, 62, 63, 64, 65, 71, 72})
    for (const int more : {-1, 0, 1})
      for (const int sign : {1, -1}) values.push_back(sign * ((Wide{1} << bits) + more));
  for (const Wide value : values) {
    int least = 1;
    while (least < 16 && (value >> (8 * least - 1)) != 0 && (value >> (8 * least - 1)) != -1) ++least;
    const Wide most = static_cast<Wide>(~std::uint64_t{0});
    const Wide lowest = -(Wide{1} << 63);
    const std::string expected = value > most || value < lowest ? "too big"
                                 : value >= 0                   ? std::to_string(static_cast<std::uint64_t>(value))
                                                                : std::to_string(static_cast<std::int64_t>(value));
    for (const int bytes : {least, least + 1, least + 2, 9, 10, 17, 255}) {
      if (bytes < least) continue;
      const std::string digits = bytes_of(value, bytes);
      EXPECT_EQ(read_integer(byte_of(0x8a) + little(static_cast<std::uint64_t>(bytes), 1) + digits), expected);
      EXPECT_EQ(read_integer(byte_of(0x8b) + little(static_cast<std::uint64_t>(bytes), 4) + digits), expected);
    }
  }
  EXPECT_EQ(read_integer(byte_of(0x8b) + little(0, 4)), "0");
  const std::string long_one = std::string(8191, '\0');
  EXPECT_EQ(read_integer(byte_of(0x8b) + little(8192, 4) + "\x05" + long_one), "5");
  const auto refused = [](const std::string& body) {
    try {
      unpickled(body);
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(refused(byte_of(0x8b) + little(8193, 4)).ends_with("an integer of 8193 bytes"));
  EXPECT_TRUE(refused(byte_of(0x8b) + little(0xffffffff, 4)).ends_with("an integer of a negative length"));
}

// --- values of every kind -------------------------------------------------------------------------------------------

/// A value as text: what is written and what is read must be the same.
struct DrawnValue {
  std::string body;  ///< of a pickle
  std::string text;
};

class Drawing {
 public:
  explicit Drawing(unsigned seed) : random_(seed) {}

  DrawnValue value(int depth) {
    const unsigned choice = below(depth > 0 ? 11 : 7);
    switch (choice) {
      case 0:
        return {"N", "none"};
      case 1:
        return {std::string(1, byte_of(0x88)), "true"};
      case 2:
        return {std::string(1, byte_of(0x89)), "false"};
      case 3:
        return integer();
      case 4:
        return real();
      case 5:
      case 6:
        return text();
      case 7:
        return list(depth);
      case 8:
        return tuple(depth);
      case 9:
        return dict(depth);
      default:
        return twice(depth);
    }
  }

 private:
  unsigned below(unsigned count) { return static_cast<unsigned>(random_() % count); }

  DrawnValue integer() {
    const std::int64_t value = static_cast<std::int64_t>(random_() >> below(64)) * (below(2) == 0 ? 1 : -1);
    const std::string text = std::to_string(value);
    if (value >= 0 && value < 256 && below(2) == 0) return {"K" + little(static_cast<std::uint64_t>(value), 1), text};
    if (value >= 0 && value < 65536 && below(2) == 0) return {"M" + little(static_cast<std::uint64_t>(value), 2), text};
    if (value == static_cast<std::int32_t>(value) && below(2) == 0)
      return {"J" + little(static_cast<std::uint64_t>(value), 4), text};
    return {byte_of(0x8a) + little(8, 1) + little(static_cast<std::uint64_t>(value), 8), text};
  }
  DrawnValue real() {
    const double value = static_cast<double>(static_cast<int>(below(2000)) - 1000) / 8;
    return {"G" + little(__builtin_bswap64(std::bit_cast<std::uint64_t>(value)), 8), fmt::format("real {}", value)};
  }
  DrawnValue text() {
    const std::string text = fmt::format("t{}{}", below(300), std::string(below(20) == 0 ? 200 : 0, 'x'));
    switch (below(6)) {
      case 0:
        return {"X" + little(text.size(), 4) + text, "'" + text + "'"};
      case 1:
        return {byte_of(0x8d) + little(text.size(), 8) + text, "'" + text + "'"};
      case 2:
        return {(below(2) == 0 ? "U" : "C") + little(text.size(), 1) + text, "'" + text + "'"};
      case 3:
        return {(below(2) == 0 ? "T" : "B") + little(text.size(), 4) + text, "'" + text + "'"};
      case 4:
        return {byte_of(below(2) == 0 ? 0x8e : 0x96) + little(text.size(), 8) + text, "'" + text + "'"};
      default:
        return {byte_of(0x8c) + little(text.size(), 1) + text, "'" + text + "'"};
    }
  }
  DrawnValue list(int depth) {
    DrawnValue made{"]", "["};
    for (unsigned batch = below(3); batch > 0; --batch) {
      const bool is_single = below(2) == 0;
      if (!is_single) made.body += "(";
      for (unsigned i = is_single ? 1 : below(4); i > 0; --i) add(made, value(depth - 1));
      made.body += is_single ? "a" : "e";
      if (!is_single) break;  // what picklers write is complete then
    }
    made.text += "]";
    return made;
  }
  DrawnValue tuple(int depth) {
    const unsigned count = below(5);
    DrawnValue made{"", "("};
    const bool has_mark = count > 3 || below(2) == 0;
    if (has_mark) made.body = "(";
    for (unsigned i = 0; i < count; ++i) add(made, value(depth - 1));
    constexpr int kOps[] = {')', 0x85, 0x86, 0x87};
    made.body += has_mark ? 't' : byte_of(kOps[count]);
    made.text += ")";
    return made;
  }
  DrawnValue dict(int depth) {
    DrawnValue made{"}", "{"};
    const bool is_single = below(2) == 0;
    if (!is_single) made.body += "(";
    for (unsigned i = 0; i < below(4) + 1; ++i) {
      const std::string key = fmt::format("k{}", i);
      made.body += byte_of(0x8c) + little(key.size(), 1) + key;
      made.text += key + ":";
      add(made, value(depth - 1));
      if (is_single) made.body += "s";
    }
    if (!is_single) made.body += "u";
    made.text += "}";
    return made;
  }
  /// The value, pushed and popped, memoised, and named once more, also by a number that nobody follows.
  DrawnValue twice(int depth) {
    const DrawnValue once = value(depth - 1);
    const unsigned place = 1000 + next_place_++;
    std::string body = "(" + once.body + "r" + little(place, 4) + "N0" + "j" + little(place, 4) + byte_of(0x95) +
                       little(below(1000), 8) + "t";
    return {body, "(" + once.text + "," + once.text + ",)"};
  }
  static void add(DrawnValue& to, const DrawnValue& value) {
    to.body += value.body;
    to.text += value.text + ",";
  }

  std::mt19937_64 random_;
  unsigned next_place_ = 0;
};

std::string shown_value(const Pickle& pickle, PickleValue value) {
  bool ok = false;
  std::string text;
  switch (value.kind()) {
    case Kind::kNone:
      return "none";
    case Kind::kTrue:
      return "true";
    case Kind::kFalse:
      return "false";
    case Kind::kReal:
      return fmt::format("real {}", pickle.real(value));
    case Kind::kText:
      return fmt::format("'{}'", pickle.text(value));
    case Kind::kList:
    case Kind::kTuple:
      pickle.for_each(value, [&](std::uint64_t, PickleValue item) { text += shown_value(pickle, item) + ","; });
      return value.kind() == Kind::kList ? "[" + text + "]" : "(" + text + ")";
    case Kind::kDict: {
      for (int i = 0; i < 5; ++i) {
        const std::string key = fmt::format("k{}", i);
        if (static_cast<std::uint64_t>(i) < pickle.size(value))
          text += key + ":" + shown_value(pickle, pickle.get(value, key)) + ",";
      }
      return "{" + text + "}";
    }
    default:
      return std::to_string(pickle.signed_int(value, ok));
  }
}

TEST(PickleValues, OfEveryKindAreReadAsTheyWereWritten) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    Drawing drawing(seed);
    const DrawnValue drawn = drawing.value(5);
    const Pickle pickle = unpickled(drawn.body);
    ASSERT_EQ(shown_value(pickle, pickle.root()), drawn.text) << "seed " << seed;
  }
}

TEST(PickleValues, OfManyTextsAndShapesAreToldApart) {
  std::string body = "](", expected = "[";
  for (int i = 0; i < 3000; ++i) {
    const std::string key = fmt::format("k{}", i % 5), text = fmt::format("text {}", i % 1500);
    body +=
        "}(" + (byte_of(0x8c) + little(key.size(), 1)) + key + (byte_of(0x8c) + little(text.size(), 1)) + text + "u";
  }
  const Pickle pickle = unpickled(body + "e");
  std::uint64_t seen = 0;
  pickle.for_each(pickle.root(), [&](std::uint64_t i, PickleValue item) {
    ++seen;
    ASSERT_EQ(pickle.text(pickle.get(item, fmt::format("k{}", i % 5))), fmt::format("text {}", i % 1500));
    ASSERT_EQ(pickle.get(item, fmt::format("k{}", (i + 1) % 5)).kind(), Kind::kNone);
  });
  EXPECT_EQ(seen, 3000U);
  const Pickle nothing = unpickled("}");
  EXPECT_EQ(nothing.get(nothing.root(), "k").kind(), Kind::kNone) << "no key at all";
}

/// {"k": NUMBER} in one go.
std::string small_dict(std::uint64_t number) {
  return "}(" + (byte_of(0x8c) + little(1, 1)) + "kJ" + little(number, 4) + "u";
}

TEST(PickleValues, EqualContainersAreKeptOnceAsLongAsThatIsWorthIt) {
  // One of the first thousand is looked for; then those of a kind of which more than an eighth was found.
  const auto nodes_of = [](int different, int again) {
    std::string body = "](";
    for (int i = 0; i < different; ++i) body += small_dict(static_cast<std::uint64_t>(i));
    for (int i = 0; i < again; ++i) body += small_dict(static_cast<std::uint64_t>(i));
    return unpickled(body + "e").node_count();
  };
  EXPECT_EQ(nodes_of(10, 10), 11U) << "and the list";
  EXPECT_EQ(nodes_of(900, 100), 901U);
  EXPECT_EQ(nodes_of(999, 1), 1000U);
  EXPECT_EQ(nodes_of(1000, 1), 1002U) << "a thousand were looked for in vain";
  EXPECT_EQ(nodes_of(875, 200), 876U + 75U) << "125 of 1000 are just an eighth";
  EXPECT_EQ(nodes_of(874, 200), 875U) << "126 of 1000 are more";
}

TEST(PickleValues, OfMoreThanTwoHundredAndFiftySixItemsAreNotLookedFor) {
  const auto nodes_of = [](int items) {
    std::string list = "](";
    for (int i = 0; i < items; ++i) list += "K" + little(static_cast<std::uint64_t>(i % 7), 1);
    list += "e";
    return unpickled("](" + list + list + "e").node_count();
  };
  EXPECT_EQ(nodes_of(255), 2U);
  EXPECT_EQ(nodes_of(256), 2U);
  EXPECT_EQ(nodes_of(257), 3U);
}

// --- other files ----------------------------------------------------------------------------------------------------

std::string refusal_of_file(const std::string& bytes) {
  InputFile input("some/file", {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  try {
    read_traces(input, {});
  } catch (const TraceError& error) {
    return error.what();
  }
  return "read";
}

TEST(ForeignFiles, AreToldByTheirFirstBytesWithWhatToDo) {
  const std::string page = "a page, not a history: name the file that it was made from";
  const std::vector<std::pair<std::string, std::string>> known = {
      {"PK\x03\x04", "a zip archive; unpack it and name the history in it: unzip some/file"},
      {"(\xb5\x2f\xfd", "compressed by zstd; unpack it and name the history in it: unzstd some/file"},
      {"\xfd"
       "7zXZ",
       "compressed by xz; unpack it and name the history in it: unxz -k some/file"},
      {"BZh", "compressed by bzip2; unpack it and name the history in it: bunzip2 -k some/file"},
      {"7z\xbc\xaf", "a 7z archive; unpack it and name the history in it: 7z x some/file"},
      {"\x04\x22\x4d\x18", "compressed by lz4; unpack it and name the history in it: unlz4 some/file"},
      {"<!DOCTYPE", page},
      {"<html", page},
      {"\x7f"
       "ELF",
       "a program or a plugin, not a history"},
      {"\x89PNG", "a picture, not a history"}};
  for (const auto& [begins, advice] : known) {
    for (const char* rest : {"", "\n", " and so on\nmore"})
      EXPECT_NE(refusal_of_file(begins + rest).find(advice), std::string::npos) << refusal_of_file(begins + rest);
    EXPECT_EQ(refusal_of_file("x" + begins + "\n").find(advice), std::string::npos) << "not at the beginning";
    EXPECT_EQ(refusal_of_file(begins.substr(0, begins.size() - 1)).find(advice), std::string::npos) << "not whole";
  }
}

TEST(ForeignFiles, OfTorchSaveAndOfTarAreToldByWhatStandsFurtherOn) {
  const std::string advice =
      "a zip archive of torch.save; a snapshot is written by "
      "torch.cuda.memory._dump_snapshot(\"memory.pickle\"), or by pickle.dump of "
      "torch.cuda.memory._snapshot()";
  const auto is_of_torch = [&](std::size_t place) {
    std::string bytes = "PK\x03\x04" + std::string(place - 4, 'x') + "/data.pkl";
    return refusal_of_file(bytes + "more").find(advice) != std::string::npos;
  };
  for (const std::size_t place : {4U, 30U, 246U, 247U}) EXPECT_TRUE(is_of_torch(place)) << place;
  for (const std::size_t place : {248U, 260U}) EXPECT_FALSE(is_of_torch(place)) << "beyond the first 256 bytes";
  EXPECT_EQ(refusal_of_file("PK\x03\x05 folder/data.pkl").find(advice), std::string::npos) << "no zip archive";
  const auto is_tar = [](std::size_t place, const std::string& mark) {
    return refusal_of_file(std::string(place, 'x') + mark)
               .find("a tar archive; unpack it and name the history in it: tar xf some/file") != std::string::npos;
  };
  EXPECT_TRUE(is_tar(257, "ustar"));
  EXPECT_TRUE(is_tar(257, "ustar  \n and more"));
  EXPECT_FALSE(is_tar(257, "usta"));
  EXPECT_FALSE(is_tar(256, "ustar"));
  EXPECT_FALSE(is_tar(258, "ustar"));
  EXPECT_FALSE(is_tar(257, ""));
}

}  // namespace
}  // namespace tenon::replay
