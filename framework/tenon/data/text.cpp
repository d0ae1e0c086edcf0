// Reading text: bytes to code points to numbers.
#include <tenon/data/text.h>

#include <tenon/core/error.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <boost/locale/utf.hpp>

#include <algorithm>
#include <filesystem>
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

std::ifstream opened(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw ConfigError(
        fmt::format("no such text: '{}'; [data] path names a file or a folder of text files", path.string()));
  }
  return file;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file = opened(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

using Utf8 = boost::locale::utf::utf_traits<char>;

std::vector<std::uint32_t> code_points(const std::string& bytes, const fs::path& path) {
  std::vector<std::uint32_t> points;
  points.reserve(bytes.size());
  for (auto at = bytes.begin(); at != bytes.end();) {
    const auto start = at;
    const boost::locale::utf::code_point point = Utf8::decode(at, bytes.end());
    if (!boost::locale::utf::is_valid_codepoint(point)) {
      throw Error(fmt::format("'{}' is not UTF-8 text at byte {}; data.unit = \"byte\" reads any file", path.string(),
                              start - bytes.begin()));
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace

std::string TextCorpus::decode(const std::vector<std::int32_t>& symbols) const {
  std::string text;
  for (const std::int32_t symbol : symbols) {
    const std::uint32_t value = vocabulary.at(static_cast<std::size_t>(symbol));
    if (unit == TextUnit::kByte) {
      text += static_cast<char>(value);
    } else {
      Utf8::encode(value, std::back_inserter(text));
    }
  }
  return text;
}

void check_text(const std::string& path) {
  for (const fs::path& file : files_of(path)) static_cast<void>(opened(file));
}

TextCorpus read_text(const std::string& path, TextUnit unit) {
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
  if (train.empty()) throw Error(fmt::format("'{}' holds no text", path));

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
