// SHA-256 by OpenSSL's libcrypto.
#include <tenon/core/error.h>
#include <tenon/runtime/plugins/sha256.h>

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace tenon {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    check(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void add(const void* data, std::size_t bytes) { check(EVP_DigestUpdate(context_.get(), data, bytes) == 1); }
  std::string finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
  }

 private:
  static void check(bool good) {
    if (!good) throw Error("SHA-256 is not available from OpenSSL's libcrypto; check its configuration (openssl.cnf)");
  }
  std::unique_ptr<EVP_MD_CTX, FreeContext> context_;
};

}  // namespace

std::string sha256_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.finish();
}

std::string sha256_of_file(const std::filesystem::path& path) { return FileDigest(path).text(); }

FileDigest::FileDigest(std::filesystem::path path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rbe")) {
  if (!file_) throw Error(fmt::format("cannot read {}: {}", path_.string(), std::strerror(errno)));
}

const std::string& FileDigest::text() const {
  const std::lock_guard lock(mutex_);
  if (!file_) return text_;
  std::rewind(file_.get());
  Sha256 hash;
  std::vector<char> buffer(1 << 16);
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file_.get())) hash.add(buffer.data(), got);
  if (std::ferror(file_.get()) != 0)
    throw Error(fmt::format("cannot read {}: {}", path_.string(), std::strerror(errno)));
  text_ = hash.finish();
  file_.reset();
  return text_;
}

}  // namespace tenon
