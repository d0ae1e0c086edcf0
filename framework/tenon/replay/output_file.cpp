// OutputFile over zlib, which writes plain files too.
#include <tenon/core/error.h>
#include <tenon/replay/output_file.h>

#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace tenon::replay {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  const char* const mode = path_.ends_with(".gz") ? "wb6" : "wbT";
  errno = 0;
  file_ = ::gzopen(path_.c_str(), mode);
  if (file_ == nullptr) throw Error(path_ + ": cannot be written: " + std::strerror(errno));
  buffer_.reserve(kBufferBytes + 4096);
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  ::gzclose(static_cast<gzFile>(file_));
  std::remove(path_.c_str());
}

void OutputFile::number(std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  buffer_.append(digits, end);
}

void OutputFile::flush() {
  if (buffer_.empty()) return;
  const int written = ::gzwrite(static_cast<gzFile>(file_), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  if (written != static_cast<int>(buffer_.size())) throw Error(path_ + ": cannot be written: " + std::strerror(errno));
  buffer_.clear();
}

void OutputFile::close() {
  flush();
  const int code = ::gzclose(static_cast<gzFile>(file_));
  file_ = nullptr;
  if (code != Z_OK) {
    std::remove(path_.c_str());
    throw Error(path_ + ": cannot be written: " + std::strerror(errno));
  }
}

}  // namespace tenon::replay
