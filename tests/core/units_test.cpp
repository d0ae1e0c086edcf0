// Sizes as text: what a person types for bytes, and what is printed for them.
#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::string_view text) {
  try {
    parse_size(text);
  } catch (const ConfigError& error) {
    EXPECT_FALSE(try_parse_size(text)) << text;
    return error.what();
  }
  return "";
}

TEST(Sizes, AWholeNumberTakesAnyUnitOrNone) {
  EXPECT_EQ(parse_size("512"), 512u);
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("7B"), 7u);
  EXPECT_EQ(parse_size(" 128 mib "), 128 * MiB);
  EXPECT_EQ(parse_size("80GiB"), 80 * GiB);
  EXPECT_EQ(parse_size("18446744073709551615"), ~std::size_t{0});
}

TEST(Sizes, AreReadToTheEndOfTheirTextWhateverIsBehindIt) {
  const std::string_view longer = "12345MiB";
  EXPECT_EQ(parse_size(longer.substr(0, 3)), 123u);
  EXPECT_EQ(parse_size(longer.substr(0, 5)), 12345u);
}

TEST(Sizes, AFractionOfAUnitIsRoundedDownToWholeBytes) {
  EXPECT_EQ(parse_size("1.5GiB"), GiB + GiB / 2);
  EXPECT_EQ(parse_size("14.7GiB"), 15784004812u) << "15784004812.8";
  EXPECT_EQ(parse_size("14.7 GiB"), parse_size("14.7gib"));
  EXPECT_EQ(parse_size(".5KiB"), 512u);
  EXPECT_EQ(parse_size("0.3KiB"), 307u);
  EXPECT_EQ(parse_size("2.KiB"), 2 * KiB);
  EXPECT_EQ(parse_size("3.00"), 3u) << "nothing is lost";
}

TEST(Sizes, AFractionIsExactBeyondTheDigitsOfADouble) {
  EXPECT_EQ(parse_size("9007.1992547409930TiB"), 9903520314283043u) << "odd, above 2^53";
  EXPECT_EQ(parse_size("0.00000000000090949470177292823791503906250000000000TiB"), 1u) << "2^-40, to its last digit";
  EXPECT_EQ(refusal("0.00000000000090949470177292823791503906249999999999TiB"),
            "\"0.00000000000090949470177292823791503906249999999999TiB\" is not a size: less than one byte");
}

TEST(Sizes, ADeviceOfLessThanAPageHasLostItsUnit) {
  EXPECT_EQ(forgotten_unit("8"), "8 is 8 bytes, less than a page of the device; did you mean 8GiB? 8B if not");
  EXPECT_THAT(forgotten_unit("1"), HasSubstr("1 is 1 byte, "));
  EXPECT_THAT(forgotten_unit(" 1024 "), HasSubstr("did you mean 1024GiB?"));
  EXPECT_THAT(forgotten_unit("81559"), HasSubstr("did you mean 81559MiB?")) << "as nvidia-smi counts";
  EXPECT_NE(forgotten_unit(std::to_string(512 * KiB)), "");
  EXPECT_EQ(forgotten_unit(std::to_string(512 * KiB + 1)), "") << "small devices are written in bytes, too";
  for (const char* text : {"8B", "8GiB", "8 KiB", "0", "1048576", "85899345920", "many", ""})
    EXPECT_EQ(forgotten_unit(text), "") << text;
}

TEST(Sizes, AFractionOfAByteIsRefusedWithTheNextStep) {
  for (const char* text : {"1.5", "0.3B", "1024.25 b"}) {
    EXPECT_THAT(refusal(text), AllOf(HasSubstr(text), HasSubstr("not a whole number of bytes"), HasSubstr("1.5GiB")));
  }
  EXPECT_THAT(refusal("0.0001KiB"), HasSubstr("less than one byte"));
}

TEST(Sizes, WhatIsNoSizeIsQuotedWithTheReason) {
  EXPECT_THAT(refusal("4KB"), AllOf(HasSubstr("\"4KB\""), HasSubstr("write KiB")));
  EXPECT_THAT(refusal("1.5 GB"), HasSubstr("write GiB"));
  EXPECT_THAT(refusal("12 parsecs"), AllOf(HasSubstr("\"parsecs\""), HasSubstr("KiB, MiB, GiB, TiB")));
  EXPECT_THAT(refusal("1.2.3GiB"), HasSubstr("\"1.2.3\" is not a number"));
  EXPECT_THAT(refusal(".GiB"), HasSubstr("not a number"));
  for (const char* text : {"", "GiB", "-1GiB", "+1GiB"}) EXPECT_THAT(refusal(text), HasSubstr("expected a number"));
}

TEST(Sizes, WhatDoesNotFitIsRefused) {
  for (const char* text : {"18446744073709551616", "16777216TiB", "16777216.5TiB", "99999999999999999999.5KiB"})
    EXPECT_THAT(refusal(text), HasSubstr("more than 2^64 bytes"));
  EXPECT_EQ(parse_size("16777215.9TiB"), 18446743963758388838u);
}

TEST(Sizes, TheExactSpellingReadsBack) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1000}, 1536 * KiB, 128 * MiB, parse_size("14.7GiB")})
    EXPECT_EQ(parse_size(format_size_exact(bytes)), bytes);
  EXPECT_EQ(format_size_exact(1536 * KiB), "1536KiB");
  EXPECT_EQ(format_bytes(parse_size("14.7GiB")), "14.7 GiB");
}

}  // namespace
}  // namespace tenon::test
