// OutputFile over zlib, which writes plain files too.
#include <tenon/core/error.h>
#include <tenon/core/process/standard_output.h>
#include <tenon/replay/formats/io/output_file.h>

#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace tenon::replay {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_ == "-") {
    path_ = "standard output";
  } else {
    target_.emplace(path_);
  }
  const int descriptor = ::dup(target_ ? target_->descriptor() : standard_output());
  if (descriptor < 0) fail();
  file_ = ::gzdopen(descriptor, path_.ends_with(".gz") ? "wb6" : "wbT");
  if (file_ == nullptr) {
    ::close(descriptor);
    throw Error("cannot write " + path_ + ": out of memory");
  }
  buffer_.reserve(kBufferBytes + 4096);
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) ::gzclose(static_cast<gzFile>(file_));
}

void OutputFile::fail() const { throw Error("cannot write " + path_ + ": " + std::strerror(errno)); }

void OutputFile::number(std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  buffer_.append(digits, end);
}

void OutputFile::flush() {
  if (buffer_.empty()) return;
  const int written = ::gzwrite(static_cast<gzFile>(file_), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  if (written != static_cast<int>(buffer_.size())) fail();
  buffer_.clear();
}

void OutputFile::close() {
  flush();
  const int code = ::gzclose(static_cast<gzFile>(file_));
  file_ = nullptr;
  if (code != Z_OK) fail();
  if (target_) target_->commit(AtomicFile::Durable::kNo);
}

}  // namespace tenon::replay
