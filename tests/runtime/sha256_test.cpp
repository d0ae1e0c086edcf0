// SHA-256 against the vectors of FIPS 180-4, and lengths around its padding.
#include <tenon/runtime/plugins/sha256.h>

#include "runtime/fixture.h"

namespace tenon::test {
namespace {

std::string hash(const std::string& text) { return sha256_of(std::as_bytes(std::span(text))); }

TEST(Sha256, GivesTheStandardsDigests) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  const Folder folder;
  for (const std::size_t length : {0, 1, 55, 56, 63, 64, 65, 65536, 70001}) {
    const std::string text(length, 'x');
    EXPECT_EQ(sha256_of_file(folder.write("f", text)), hash(text)) << length;
  }
}

TEST(Sha256, OfAFileThatIsNotThereIsAnErrorThatNamesIt) {
  EXPECT_NE(message_of<Error>([] { sha256_of_file("/no/such/file"); }).find("/no/such/file"), std::string::npos);
}

TEST(FileDigest, IsThatOfTheFileThatWasThereWhenItWasMade) {
  const Folder folder;
  const FileDigest digest(folder.write("f", "abc"));
  folder.write("g", "another");
  std::filesystem::rename(folder.path() / "g", folder.path() / "f");
  EXPECT_EQ(digest.text(), hash("abc"));
  EXPECT_EQ(digest.text(), hash("abc")) << "asked a second time";
}

TEST(FileDigest, OfAFileThatCannotBeReadIsAnErrorThatNamesIt) {
  EXPECT_NE(message_of<Error>([] { const FileDigest digest("/no/such/file"); }).find("/no/such/file"),
            std::string::npos);
  const Folder folder;
  const FileDigest digest(folder.path());
  EXPECT_NE(message_of<Error>([&] { static_cast<void>(digest.text()); }).find(folder.path().string()),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::test
