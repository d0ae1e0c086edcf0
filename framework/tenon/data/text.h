// Text for language models: files read whole, cut into characters or bytes, numbered, and parted for training and
// validation.
#pragma once

#include <tenon/core/export.h>
#include <tenon/data/dataset.h>
#include <tenon/data/image_set.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::data {

/// What is one symbol: a character (a code point of UTF-8), or a byte of whatever the file holds.
enum class TextUnit { kCharacter, kByte };

struct TextCorpus {
  std::vector<std::int32_t> train, validation;  ///< numbers below vocabulary.size()
  std::vector<std::uint32_t> vocabulary;        ///< by number: the code point or the byte, ascending

  /// The text of some symbols, as UTF-8 or as the bytes themselves.
  TENON_API std::string decode(const std::vector<std::int32_t>& symbols) const;
  TextUnit unit = TextUnit::kCharacter;
};

/// The licences that every Debian has (package base-files): 300 kB of English prose.
inline constexpr const char* kTextFolder = "/usr/share/common-licenses";

/// Throws what read_text does where there is nothing to read; reads nothing.
TENON_API void check_text(const std::string& path);

/// Reads a file, or the files of a folder in the order of their names (links and folders below it left out). The last
/// tenth of each file is for validation. With kByte the vocabulary is that of all 256 bytes, otherwise the characters
/// that occur in either part. Throws Error that names the file: missing, empty, or no UTF-8 (with the offset).
TENON_API TextCorpus read_text(const std::string& path, TextUnit unit);

namespace datasets {

/// Windows of `context` symbols and, as target, the same window one symbol on: int64, both of length `context`. Windows
/// do not overlap; what is left over at the end is not used.
class TENON_EXPORT TextWindows : public Dataset<TextWindows> {
 public:
  /// Throws Error where the part holds less than one window.
  TENON_API TextWindows(const TextCorpus& corpus, Split split, std::int64_t context);
  TENON_API Example<> get(std::size_t index) override;
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(count_); }

 private:
  Tensor symbols_;  ///< int64
  std::int64_t context_;
  std::int64_t count_;
};

}  // namespace datasets

/// How many windows of `context` symbols with a target each a part of `symbols` symbols has.
inline std::int64_t window_count(std::int64_t symbols, std::int64_t context) {
  return symbols < 2 ? 0 : (symbols - 1) / context;
}

}  // namespace tenon::data
