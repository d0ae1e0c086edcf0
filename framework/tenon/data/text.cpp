// Reading text: bytes to code points to numbers.
#include <tenon/data/text.h>

#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <span>

namespace tenon::data {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw Error(fmt::format("the folder '{}' holds no files to read text from", path.string()));
  return files;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(fmt::format("no such text: '{}'; [data] path names a file or a folder of text files", path.string()));
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Length of the sequence that a first byte announces, 0 for none that UTF-8 has.
std::size_t sequence_length(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return 4;
  return 0;
}

std::vector<std::uint32_t> code_points(const std::string& bytes, const fs::path& path) {
  std::vector<std::uint32_t> points;
  points.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<std::uint8_t>(bytes[i]);
    const std::size_t length = sequence_length(first);
    bool valid = length > 0 && i + length <= bytes.size();
    std::uint32_t point = length == 1 ? first : first & (0x7fU >> length);
    for (std::size_t k = 1; valid && k < length; ++k) {
      const auto next = static_cast<std::uint8_t>(bytes[i + k]);
      valid = (next & 0xc0U) == 0x80;
      point = point << 6U | (next & 0x3fU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    valid = valid && point >= kLeast[length] && point < 0x110000 && (point < 0xd800 || point > 0xdfff);
    if (!valid) {
      throw Error(
          fmt::format("'{}' is not UTF-8 text at byte {}; data.unit = \"byte\" reads any file", path.string(), i));
    }
    points.push_back(point);
    i += length;
  }
  return points;
}

void append_utf8(std::string& text, std::uint32_t point) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6U);
  } else {
    if (point < 0x10000) {
      put(0xe0 | point >> 12U);
    } else {
      put(0xf0 | point >> 18U);
      put(0x80 | (point >> 12U & 0x3fU));
    }
    put(0x80 | (point >> 6U & 0x3fU));
  }
  put(0x80 | (point & 0x3fU));
}

}  // namespace

std::string TextCorpus::decode(const std::vector<std::int32_t>& symbols) const {
  std::string text;
  for (const std::int32_t symbol : symbols) {
    const std::uint32_t value = vocabulary.at(static_cast<std::size_t>(symbol));
    if (unit == TextUnit::kByte) {
      text += static_cast<char>(value);
    } else {
      append_utf8(text, value);
    }
  }
  return text;
}

TextCorpus read_text(const fs::path& path, TextUnit unit) {
  std::vector<std::uint32_t> train, validation;
  for (const fs::path& file : files_of(path)) {
    const std::string bytes = bytes_of(file);
    std::vector<std::uint32_t> values;
    if (unit == TextUnit::kCharacter) {
      values = code_points(bytes, file);
    } else {
      for (const char byte : bytes) values.push_back(static_cast<std::uint8_t>(byte));
    }
    const auto border = values.end() - static_cast<std::ptrdiff_t>(values.size() / 10);
    train.insert(train.end(), values.begin(), border);
    validation.insert(validation.end(), border, values.end());
  }
  if (train.empty()) throw Error(fmt::format("'{}' holds no text", path.string()));

  TextCorpus corpus;
  corpus.unit = unit;
  std::map<std::uint32_t, std::int32_t> numbers;
  if (unit == TextUnit::kByte) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) numbers[byte] = 0;
  }
  for (const std::uint32_t value : train) numbers[value] = 0;
  for (const std::uint32_t value : validation) numbers[value] = 0;
  for (auto& [value, number] : numbers) {
    number = static_cast<std::int32_t>(corpus.vocabulary.size());
    corpus.vocabulary.push_back(value);
  }
  const auto numbered = [&](const std::vector<std::uint32_t>& values) {
    std::vector<std::int32_t> result;
    result.reserve(values.size());
    for (const std::uint32_t value : values) result.push_back(numbers.at(value));
    return result;
  };
  corpus.train = numbered(train);
  corpus.validation = numbered(validation);
  return corpus;
}

namespace datasets {

TextWindows::TextWindows(const TextCorpus& corpus, Split split, std::int64_t context) : context_(context) {
  const std::vector<std::int32_t>& part = split == Split::kTrain ? corpus.train : corpus.validation;
  const auto size = static_cast<std::int64_t>(part.size());
  count_ = window_count(size, context);
  if (count_ == 0)
    throw Error(fmt::format("{} symbols of text are less than one window of {} and a target", size, context));
  PurposeGuard purpose(Purpose::kData);
  symbols_ = tenon::from_blob(const_cast<std::int32_t*>(part.data()), {size}, TensorOptions(kInt32)).to(kInt64);
}

Example<> TextWindows::get(std::size_t index) {
  const std::int64_t start = static_cast<std::int64_t>(index) * context_;
  return {symbols_.narrow(0, start, context_), symbols_.narrow(0, start + 1, context_)};
}

}  // namespace datasets

}  // namespace tenon::data
