// The safetensors format.
#include <tenon/nn/serialize/safetensors.h>
#include <tenon/nn/serialize/safetensors_metadata.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace tenon::nn {
namespace {

constexpr std::size_t kLargestHeader = 100u << 20;
constexpr std::size_t kLengthBytes = 8;

/// Of at least kLengthBytes: how many bytes of header follow, as the file says.
std::uint64_t header_length(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<std::uint64_t>(bytes[i]);
  return length;
}

struct DtypeName {
  Dtype dtype;
  const char* name;
};
constexpr DtypeName kDtypeNames[] = {{Dtype::kBool, "BOOL"},   {Dtype::kUInt8, "U8"},      {Dtype::kInt8, "I8"},
                                     {Dtype::kInt16, "I16"},   {Dtype::kInt32, "I32"},     {Dtype::kInt64, "I64"},
                                     {Dtype::kFloat16, "F16"}, {Dtype::kBFloat16, "BF16"}, {Dtype::kFloat32, "F32"},
                                     {Dtype::kFloat64, "F64"}};

std::string file_dtype(Dtype dtype) {
  return std::find_if(std::begin(kDtypeNames), std::end(kDtypeNames), [&](const auto& d) { return d.dtype == dtype; })
      ->name;
}

/// One tensor of a header, checked.
struct Entry {
  std::string name;
  Dtype dtype = Dtype::kFloat32;
  std::vector<std::int64_t> sizes;
  std::size_t begin = 0, end = 0;
};

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  /// Each tensor is what `make` makes of its entry and its bytes.
  template <typename Make>
  TensorFile read(const Make& make) {
    const nlohmann::json header = parse_header();
    TensorFile file;
    std::vector<Entry> entries;
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(value, file);
      } else {
        entries.push_back(read_entry(name, value));
      }
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    check_coverage(entries);
    for (const Entry& entry : entries) file.tensors.insert(entry.name, make(entry, data_.data() + entry.begin));
    return file;
  }

  std::map<std::string, std::string> metadata() {
    const nlohmann::json header = parse_header();
    TensorFile file;
    if (header.contains("__metadata__")) read_metadata(header["__metadata__"], file);
    return std::move(file.metadata);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw Error(fmt::format("{}: {}", origin_, reason)); }

  nlohmann::json parse_header() {
    if (bytes_.size() < kLengthBytes) fail(fmt::format("{} bytes are too few for a safetensors file", bytes_.size()));
    const std::uint64_t length = header_length(bytes_);
    if (length > kLargestHeader || length > bytes_.size() - kLengthBytes) {
      fail(fmt::format("not a safetensors file, or truncated: a header of {} bytes in a file of {}", length,
                       bytes_.size()));
    }
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + kLengthBytes);
    data_ = bytes_.subspan(kLengthBytes + length);
    nlohmann::json header = nlohmann::json::parse(text, text + length, nullptr, /*allow_exceptions=*/false);
    if (!header.is_object()) fail("the header is not a JSON object");
    return header;
  }

  void read_metadata(const nlohmann::json& value, TensorFile& file) const {
    if (!value.is_object()) fail("__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) fail(fmt::format("__metadata__ '{}' is not a string", key));
      file.metadata[key] = text.get<std::string>();
    }
  }

  Entry read_entry(const std::string& name, const nlohmann::json& value) const {
    Entry entry;
    entry.name = name;
    if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets")) {
      fail(fmt::format("tensor '{}' lacks dtype, shape or data_offsets", name));
    }
    const auto& dtype = value["dtype"];
    const auto known = std::find_if(std::begin(kDtypeNames), std::end(kDtypeNames),
                                    [&](const auto& d) { return dtype.is_string() && dtype == d.name; });
    if (known == std::end(kDtypeNames)) fail(fmt::format("tensor '{}' has the unknown dtype {}", name, dtype.dump()));
    entry.dtype = known->dtype;

    const auto& shape = value["shape"];
    if (!shape.is_array() || shape.size() > kMaxRank) fail(fmt::format("tensor '{}' has no proper shape", name));
    std::uint64_t count = 1;
    for (const auto& size : shape) {
      if (!size.is_number_unsigned()) fail(fmt::format("tensor '{}' has the size {}", name, size.dump()));
      const auto n = size.get<std::uint64_t>();
      if (n > (std::uint64_t{1} << 48) || __builtin_mul_overflow(count, n, &count) ||
          count > (std::uint64_t{1} << 48)) {
        fail(fmt::format("tensor '{}' is too large: shape {}", name, shape.dump()));
      }
      entry.sizes.push_back(static_cast<std::int64_t>(n));
    }
    const auto& offsets = value["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      fail(fmt::format("tensor '{}' has no proper data_offsets", name));
    }
    entry.begin = offsets[0].get<std::size_t>();
    entry.end = offsets[1].get<std::size_t>();
    if (entry.begin > entry.end || entry.end > data_.size()) {
      fail(fmt::format("truncated, or wrong offsets: tensor '{}' lies at [{}, {}), the data are {} bytes", name,
                       entry.begin, entry.end, data_.size()));
    }
    if (entry.end - entry.begin != count * size_of(entry.dtype)) {
      fail(fmt::format("tensor '{}' of shape {} needs {} bytes, its offsets give {}", name, shape.dump(),
                       count * size_of(entry.dtype), entry.end - entry.begin));
    }
    return entry;
  }

  void check_coverage(const std::vector<Entry>& entries) const {
    std::size_t position = 0;
    for (const Entry& entry : entries) {
      if (entry.begin != position) {
        fail(fmt::format("tensor '{}' begins at {}, where the one before ends at {}", entry.name, entry.begin,
                         position));
      }
      position = entry.end;
    }
    if (position != data_.size()) fail(fmt::format("{} bytes belong to no tensor", data_.size() - position));
  }

  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;
  std::string origin_;
};

}  // namespace

void write_safetensors(const TensorFile& file, const ByteSink& sink) {
  NoGradGuard no_grad;
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::size_t position = 0;
  for (const auto& item : file.tensors) {
    const Tensor& tensor = item.value();
    const std::size_t bytes = tensor.nbytes();
    header[item.key()] = {{"dtype", file_dtype(tensor.scalar_type())},
                          {"shape", tensor.sizes().vec()},
                          {"data_offsets", {position, position + bytes}}};
    position += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
  std::uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(text.size() >> (8 * i));
  sink(length, sizeof length);
  sink(text.data(), text.size());
  for (const auto& item : file.tensors) {
    const Tensor host = item.value().detach().cpu().contiguous();
    if (host.numel() > 0) sink(host.data_ptr(), host.nbytes());
  }
}

TensorFile read_safetensors(std::span<const std::byte> bytes, const std::string& origin, std::optional<Device> device) {
  NoGradGuard no_grad;
  return Reader(bytes, origin).read([&](const Entry& entry, const std::byte* data) {
    const Tensor tensor = tenon::empty(entry.sizes, TensorOptions(entry.dtype));
    if (entry.begin != entry.end) std::memcpy(tensor.data_ptr(), data, entry.end - entry.begin);
    return device ? tensor.to(*device) : tensor;
  });
}

void save_safetensors(const TensorFile& file, const std::string& path) {
  AtomicFile beside(path);
  std::string buffer;  // small tensors in one write
  const auto flush = [&] {
    beside.write(buffer.data(), buffer.size());
    buffer.clear();
  };
  write_safetensors(file, [&](const void* data, std::size_t count) {
    constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
    if (buffer.size() + count > kBufferBytes) flush();
    if (count >= kBufferBytes) {
      beside.write(data, count);
    } else {
      buffer.append(static_cast<const char*>(data), count);
    }
  });
  flush();
  beside.commit();
}

static std::ifstream open_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(fmt::format("cannot open '{}': {}", path.string(), std::strerror(errno)));
  return stream;
}

static std::vector<char> bytes_of_file(const std::filesystem::path& path) {
  std::ifstream stream = open_file(path);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TensorFile load_safetensors(const std::string& path, std::optional<Device> device) {
  const std::vector<char> bytes = bytes_of_file(path);
  return read_safetensors(std::as_bytes(std::span(bytes)), "'" + path + "'", device);
}

TensorFile view_safetensors(const std::string& path) {
  NoGradGuard no_grad;
  const auto bytes = std::make_shared<const std::vector<char>>(bytes_of_file(path));
  return Reader(std::as_bytes(std::span(*bytes)), "'" + path + "'")
      .read([&](const Entry& entry, const std::byte* data) {
        const auto keep_alive = [bytes](void*) {};
        return tenon::from_blob(const_cast<std::byte*>(data), entry.sizes, keep_alive, TensorOptions(entry.dtype));
      });
}

std::map<std::string, std::string> safetensors_metadata(const std::filesystem::path& path) {
  std::ifstream stream = open_file(path);
  std::vector<char> bytes(kLengthBytes);
  const auto read = [&](std::size_t from) {
    stream.read(bytes.data() + from, static_cast<std::streamsize>(bytes.size() - from));
    bytes.resize(from + static_cast<std::size_t>(stream.gcount()));
  };
  read(0);
  if (bytes.size() == kLengthBytes) {
    bytes.resize(kLengthBytes +
                 std::min<std::uint64_t>(header_length(std::as_bytes(std::span(bytes))), kLargestHeader));
    read(kLengthBytes);
  }
  return Reader(std::as_bytes(std::span(bytes)), "'" + path.string() + "'").metadata();
}

}  // namespace tenon::nn
