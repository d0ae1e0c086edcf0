// Text as numbers.
#include "data/idx_fixture.h"

#include <tenon/core/error.h>
#include <tenon/data/data_loader.h>
#include <tenon/data/text.h>
#include <tenon/data/transforms.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using data::read_text;
using data::TextCorpus;
using data::TextUnit;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of_text(const std::filesystem::path& path, TextUnit unit = TextUnit::kCharacter) {
  try {
    read_text(path, unit);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

using Text = TemporaryFolder;

TEST_F(Text, CharactersAreNumberedByCodePointAndReadBack) {
  write("a.txt",
        "b\xc3\xa4"
        "a\xf0\x9d\x84\x9e"
        "bbbbbbbbbbbb");
  const TextCorpus corpus = read_text(folder / "a.txt", TextUnit::kCharacter);
  EXPECT_THAT(corpus.vocabulary, ElementsAre('a', 'b', 0xe4, 0x1d11e));
  EXPECT_EQ(corpus.train.size(), 15u);
  EXPECT_EQ(corpus.validation.size(), 1u);
  EXPECT_EQ(corpus.decode({1, 2, 0, 3}),
            "b\xc3\xa4"
            "a\xf0\x9d\x84\x9e");
}

TEST_F(Text, BytesTakeAnyFileAndHaveAllNumbers) {
  write("a.bin", std::string("\xff\x00\xc3zzzzzzzzz", 12));
  const TextCorpus corpus = read_text(folder / "a.bin", TextUnit::kByte);
  EXPECT_EQ(corpus.vocabulary.size(), 256u);
  EXPECT_THAT(std::vector(corpus.train.begin(), corpus.train.begin() + 4), ElementsAre(255, 0, 0xc3, 'z'));
  EXPECT_EQ(corpus.decode({255, 0}), std::string("\xff\x00", 2));
}

TEST_F(Text, AFolderIsReadInTheOrderOfItsNamesAndTheLastTenthOfEachFileIsForValidation) {
  write("2", "ccccccccdd");
  write("1", "aaaaaaaaab");
  const TextCorpus corpus = read_text(folder, TextUnit::kCharacter);
  EXPECT_EQ(corpus.decode(corpus.train), "aaaaaaaaaccccccccd");
  EXPECT_EQ(corpus.decode(corpus.validation), "bd");
}

TEST_F(Text, LinksInAFolderAndFoldersBelowItAreLeftOut) {
  std::filesystem::create_directories(folder / "top" / "below");
  write("elsewhere", "xxxx");
  write("top/below/b", "yyyy");
  write("top/a", "zzzz");
  std::filesystem::create_symlink(folder / "elsewhere", folder / "top" / "link");
  const TextCorpus corpus = read_text(folder / "top", TextUnit::kCharacter);
  EXPECT_EQ(corpus.decode(corpus.train), "zzzz");
  std::filesystem::remove(folder / "top" / "a");
  EXPECT_THAT(error_of_text(folder / "top"), HasSubstr("holds no files to read text from"));
}

TEST_F(Text, WhatIsNoTextIsRefusedWithItsPlace) {
  write("cut", "abc\xc3");
  write("overlong", "ab\xc0\xaf");
  write("surrogate", "\xed\xa0\x80");
  write("empty", "");
  EXPECT_THAT(error_of_text(folder / "cut"), AllOf(HasSubstr("at byte 3"), HasSubstr("data.unit = \"byte\"")));
  EXPECT_THAT(error_of_text(folder / "overlong"), HasSubstr("at byte 2"));
  EXPECT_THAT(error_of_text(folder / "surrogate"), HasSubstr("at byte 0"));
  EXPECT_THAT(error_of_text(folder / "empty"), HasSubstr("no text"));
  EXPECT_THAT(error_of_text(folder / "missing"), HasSubstr("no such text"));
}

TEST_F(Text, WindowsHaveTheNextSymbolAsTarget) {
  write("a", "abcdefghijklmnopqrstuvwxyz");
  const TextCorpus corpus = read_text(folder, TextUnit::kCharacter);
  data::datasets::TextWindows windows(corpus, data::Split::kTrain, 5);  // 24 symbols
  ASSERT_EQ(windows.size(), 4u);
  const data::Example<> last = windows.get(3);
  EXPECT_EQ(last.data[0].item<std::int64_t>(), 15);
  EXPECT_EQ(last.target[4].item<std::int64_t>(), 20);
  EXPECT_THROW(data::datasets::TextWindows(corpus, data::Split::kTest, 5), Error);
}

TEST_F(Text, OneWorkerAndFourGiveTheSameBatches) {
  std::string letters;
  for (int i = 0; i < 400; ++i) letters += static_cast<char>('a' + i * i % 23);
  write("a", letters);
  const TextCorpus corpus = read_text(folder, TextUnit::kCharacter);
  const auto epochs = [&](std::size_t workers) {
    manual_seed(5);
    auto loader = data::make_data_loader<data::samplers::RandomSampler>(
        data::datasets::TextWindows(corpus, data::Split::kTrain, 8).map(data::transforms::Stack<>()),
        data::DataLoaderOptions(4).workers(workers));
    std::vector<Tensor> inputs;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& batch : *loader) inputs.push_back(batch.data);
    }
    return cat(inputs, 0);
  };
  const Tensor none = epochs(0);
  EXPECT_EQ(none.size(0), 88);
  EXPECT_TRUE(epochs(1).equal(none));
  EXPECT_TRUE(epochs(4).equal(none));
}

TEST(Licences, AreThereOnEveryDebian) {
  if (!std::filesystem::is_directory(data::kTextFolder)) GTEST_SKIP() << "no " << data::kTextFolder;
  const TextCorpus corpus = read_text(data::kTextFolder, TextUnit::kCharacter);
  EXPECT_GT(corpus.train.size(), 100'000u);
  EXPECT_LT(corpus.vocabulary.size(), 256u);
  EXPECT_THAT(corpus.decode(corpus.train), HasSubstr("WARRANTY"));
}

}  // namespace
}  // namespace tenon::test
