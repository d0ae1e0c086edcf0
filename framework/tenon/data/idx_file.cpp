// IDX files: the header is checked before a byte of the body is believed. Read by zlib itself: the reader of histories
// stands above data, and refuses what expands as much as empty pictures do.
#include <tenon/core/error.h>
#include <tenon/data/idx_file.h>

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace tenon::data {
namespace {

constexpr int kUnsignedBytes = 0x08;
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;  // MNIST's relatives are far below

/// A gzipped or plain file that is read front to back; every error names the file.
class Input {
 public:
  explicit Input(const std::filesystem::path& path) : path_(path.string()), file_(gzopen(path_.c_str(), "rb")) {
    if (file_ == nullptr) throw Error(fmt::format("cannot open '{}': {}", path_, std::strerror(errno)));
    gzbuffer(file_, 1 << 17);
  }
  ~Input() { gzclose(file_); }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// As many of `count` bytes as there are.
  std::size_t read(std::uint8_t* out, std::size_t count) {
    std::size_t done = 0;
    while (done < count) {
      const int got = gzread(file_, out + done, static_cast<unsigned>(std::min<std::size_t>(count - done, 1 << 20)));
      if (got < 0) {
        int code = 0;
        const char* reason = gzerror(file_, &code);
        fail(code == Z_BUF_ERROR ? "the gzip stream ends early: the file is truncated" : reason);
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }
  [[noreturn]] void fail(std::string_view reason) const { throw Error(fmt::format("'{}': {}", path_, reason)); }

 private:
  std::string path_;
  gzFile file_;
};

std::uint32_t big_endian(const std::uint8_t* p) {
  return std::uint32_t{p[0]} << 24 | std::uint32_t{p[1]} << 16 | std::uint32_t{p[2]} << 8 | std::uint32_t{p[3]};
}

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, int rank) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) throw Error(fmt::format("no such data file: '{}'", path.string()));
  if (!std::filesystem::is_regular_file(path, ignored)) throw Error(fmt::format("'{}' is not a file", path.string()));
  Input input(path);

  std::uint8_t magic[4] = {};
  if (input.read(magic, 4) != 4) input.fail("too short for an IDX file: fewer than 4 bytes");
  if (magic[0] != 0 || magic[1] != 0) {
    input.fail(fmt::format("not an IDX file: it begins with 0x{:08x}, not 0x000008{:02x}", big_endian(magic), rank));
  }
  if (magic[2] != kUnsignedBytes) {
    input.fail(fmt::format("element type 0x{:02x}, only unsigned bytes (0x08) are read", magic[2]));
  }
  if (magic[3] != rank) input.fail(fmt::format("{} dimensions where {} are expected", magic[3], rank));

  IdxArray array;
  std::int64_t count = 1;
  for (int i = 0; i < rank; ++i) {
    std::uint8_t size[4] = {};
    if (input.read(size, 4) != 4) input.fail(fmt::format("the header ends after {} of {} sizes", i, rank));
    array.sizes.push_back(big_endian(size));
    if (array.sizes.back() != 0 && count > kMostElements / array.sizes.back()) {
      input.fail("the header's sizes are beyond 2 GiB: not a data set of pictures");
    }
    count *= array.sizes.back();
  }

  // Grows with what is really there: a header that lies costs nothing.
  const auto expected = static_cast<std::size_t>(count);
  constexpr std::size_t kPiece = 4u << 20;
  while (array.bytes.size() < expected) {
    const std::size_t before = array.bytes.size();
    const std::size_t wanted = std::min(kPiece, expected - before);
    array.bytes.resize(before + wanted);
    const std::size_t got = input.read(array.bytes.data() + before, wanted);
    if (got < wanted) {
      input.fail(fmt::format("truncated: the header announces {} bytes, the file holds {}", expected, before + got));
    }
  }
  std::uint8_t extra = 0;
  if (input.read(&extra, 1) != 0)
    input.fail(fmt::format("longer than the {} bytes that its header announces", expected));
  return array;
}

}  // namespace tenon::data
