// valid_utf8: what Python's bytes.decode("utf-8", "replace") and the JSON library make of the same bytes.
#include <tenon/core/text/utf8.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>
#include <string>

namespace tenon {
namespace {

const std::string kReplaced = "\xef\xbf\xbd";

TEST(Utf8, ValidTextStaysAsItIs) {
  for (const std::string text : {"", "plain", "Größe", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
  EXPECT_EQ(valid_utf8(std::string_view("\0a", 2)), std::string_view("\0a", 2)) << "a zero is a character";
}

TEST(Utf8, ASequenceThatIsCutIsReplacedOnce) {
  EXPECT_EQ(valid_utf8("\xe2\x82"), kReplaced);
  EXPECT_EQ(valid_utf8("\xf0\x9f\x98|"), kReplaced + "|");
  EXPECT_EQ(valid_utf8("\xf0\x9f\xe2\x82\xac"), kReplaced + "\xe2\x82\xac") << "the next one begins where it stops";
}

TEST(Utf8, BytesThatBeginNothingAreReplacedOneByOne) {
  EXPECT_EQ(valid_utf8("\x80\xbf"), kReplaced + kReplaced) << "no lead before them";
  EXPECT_EQ(valid_utf8("\xc0\xaf"), kReplaced + kReplaced) << "a longer form than needed";
  EXPECT_EQ(valid_utf8("\xe0\x80\xaf"), kReplaced + kReplaced + kReplaced) << "a longer form than needed";
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), kReplaced + kReplaced + kReplaced) << "half of a UTF-16 pair";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), kReplaced + kReplaced + kReplaced + kReplaced) << "beyond U+10FFFF";
  EXPECT_EQ(valid_utf8("\xff"), kReplaced);
}

TEST(Utf8, TheRuleIsThatOfTheJsonLibrary) {
  std::mt19937 draw(1);
  constexpr unsigned char kBytes[] = {'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2,
                                      0xdf, 0xe0, 0xe2, 0xed, 0xf0, 0xf1, 0xf4, 0xf5};
  for (int round = 0; round < 20000; ++round) {
    std::string text(draw() % 8, ' ');
    for (char& c : text) c = static_cast<char>(kBytes[draw() % std::size(kBytes)]);
    const auto json = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    ASSERT_EQ(valid_utf8(text), nlohmann::json::parse(json).get<std::string>());
  }
}

TEST(Printable, HasControlCharactersAsNumbers) {
  EXPECT_EQ(printable("a\x1b[31m\x07\tb\x7f"), "a\\x1b[31m\\x07\\x09b\\x7f");
  EXPECT_EQ(printable("\xff é"), "\xef\xbf\xbd é");
}

}  // namespace
}  // namespace tenon
