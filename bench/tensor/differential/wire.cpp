// Tensors made of words, and results written as words.
#include "wire.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace differential {
namespace {

constexpr std::array<std::pair<std::string_view, torch::ScalarType>, 10> kDtypes{{{"f32", torch::kFloat32},
                                                                                  {"f64", torch::kFloat64},
                                                                                  {"f16", torch::kHalf},
                                                                                  {"bf16", torch::kBFloat16},
                                                                                  {"i64", torch::kInt64},
                                                                                  {"i32", torch::kInt32},
                                                                                  {"i16", torch::kInt16},
                                                                                  {"i8", torch::kInt8},
                                                                                  {"u8", torch::kUInt8},
                                                                                  {"bool", torch::kBool}}};

torch::ScalarType dtype_of(std::string_view name) {
  for (const auto& [known, dtype] : kDtypes) {
    if (known == name) return dtype;
  }
  throw BadCall("unknown dtype '" + std::string(name) + "'");
}

std::string dtype_name(torch::ScalarType dtype) {
  for (const auto& [name, known] : kDtypes) {
    if (known == dtype) return std::string(name);
  }
  return "other";
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::int64_t> numbers(const std::string& text, char at) {
  std::vector<std::int64_t> result;
  if (text.empty() || text == "-") return result;
  for (const auto& part : split(text, at)) result.push_back(std::strtoll(part.c_str(), nullptr, 10));
  return result;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x1234567) {}
  std::uint64_t operator()() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

/// Element `at` of n: n ordinary, p positive, u within 0 and 1, e edges, d distinct, a ascending, i few and equal ones,
/// w whole, x5 indices 0 to 4, X5 indices -5 to 4.
double element(const std::string& kind, torch::ScalarType dtype, Draw& draw, std::int64_t at, std::int64_t n) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const bool floating = torch::isFloatingType(dtype);
  const std::uint64_t r = draw();
  if (kind[0] == 'x' || kind[0] == 'X') {
    const std::int64_t bound = std::strtoll(kind.c_str() + 1, nullptr, 10);
    if (bound <= 0) return 0;
    const auto index = static_cast<std::int64_t>(r % static_cast<std::uint64_t>(bound));
    return static_cast<double>(kind[0] == 'X' && (r >> 40) % 3 == 0 ? index - bound : index);
  }
  if (kind == "a") return floating ? static_cast<double>(at) / 2 - 1 : static_cast<double>(at);
  if (kind == "d") {  // a walk through all of them with a stride that shares no factor
    std::int64_t stride = 7;
    while (std::gcd(stride, std::max<std::int64_t>(n, 1)) != 1) stride += 2;
    const double place = static_cast<double>((at * stride + 3) % std::max<std::int64_t>(n, 1));
    return floating ? place / 8 - static_cast<double>(n / 2) / 8 : place;
  }
  if (!floating) {
    if (kind == "e") {
      constexpr std::array<double, 8> kEdges{0, 1, -1, 2, 127, -128, 255, 7};
      return kEdges[r % kEdges.size()];
    }
    if (kind == "p") return static_cast<double>(r % 9 + 1);
    if (kind == "u") return static_cast<double>(r % 2);
    if (kind == "i") return static_cast<double>(r % 3);
    return static_cast<double>(r % 17) - 8;
  }
  if (kind == "e") {
    constexpr std::array<double, 16> kEdges{0,    -0.0, 1, -1,  kInf, -kInf, std::numeric_limits<double>::quiet_NaN(),
                                            0.5,  -0.5, 2, 1.5, -2.5, 1e-3,  60000,
                                            -300, 3.0};
    return kEdges[r % kEdges.size()];
  }
  if (kind == "p") return static_cast<double>(r % 255 + 1) / 64;
  if (kind == "u") return static_cast<double>(r % 129) / 128;
  if (kind == "i") return static_cast<double>(r % 4) - 1;
  if (kind == "w") return static_cast<double>(r % 17) - 8;
  return static_cast<double>(r % 511) / 64 - 255.0 / 64;
}

Tensor contiguous(const std::vector<std::int64_t>& sizes, torch::ScalarType dtype, const std::string& kind,
                  std::uint64_t seed) {
  std::int64_t n = 1;
  for (const auto size : sizes) n *= size;
  std::vector<double> data(static_cast<std::size_t>(n));
  Draw draw(seed);
  for (std::int64_t at = 0; at < n; ++at) {
    double value = element(kind, dtype, draw, at, n);
    if (dtype == torch::kUInt8 && value < 0) value = 256 + value;
    if (dtype == torch::kBool) value = std::fmod(std::abs(value), 2) >= 1 ? 1 : 0;
    if (dtype == torch::kInt8 && value > 127) value -= 256;
    data[static_cast<std::size_t>(at)] = value;
  }
  auto made = torch::empty(sizes, torch::TensorOptions().dtype(torch::kFloat64));
  if (n > 0) std::memcpy(made.data_ptr<double>(), data.data(), sizeof(double) * static_cast<std::size_t>(n));
  return dtype == torch::kFloat64 ? made : made.to(dtype);
}

/// How much one rounding to this dtype changes a number, relative to it.
double rounding_of(torch::ScalarType dtype) {
  return std::ldexp(1.0, dtype == torch::kFloat32    ? -24
                         : dtype == torch::kHalf     ? -11
                         : dtype == torch::kBFloat16 ? -8
                                                     : -53);
}

/// The numbers each moved by up to `relative` of it and up to `least`.
Tensor shaken(const Tensor& plain, double relative, double least, std::uint64_t seed) {
  auto result = plain.contiguous().clone();
  auto* data = result.data_ptr<double>();
  Draw draw(seed);
  for (std::int64_t at = 0; at < result.numel(); ++at) {
    const double part = static_cast<double>(draw() % 2001) / 1000 - 1;
    data[at] = data[at] * (1 + relative * part) + least * part;
  }
  return result;
}

/// How the operands of this call are moved ("~3"), if they are.
struct Moved {
  torch::ScalarType dtype;
  std::uint64_t way;
};
std::optional<Moved> moved;

constexpr double kAside = 1.0 / 1024;  // how far from where it was drawn an operand of "@" lies

/// The numbers of a dtype; "f64<bf16" are those of bf16 in float64, "f64<bf16~3" these moved by a rounding in a third
/// way: what a call of bf16 cannot tell from its own. "bf16~3" are in bf16 and a unit in the last place away, and
/// "f64<bf16@3" lie where nothing is equal, 0 or a bound by chance.
Tensor drawn(const std::vector<std::int64_t>& sizes, const std::string& word, const std::string& kind,
             std::uint64_t seed) {
  const auto mark = word.find_first_of("~@");
  const auto plain = word.substr(0, mark);
  const auto less = plain.find('<');
  const auto held = dtype_of(plain.substr(0, less));
  const auto dtype = less == std::string::npos ? held : dtype_of(plain.substr(less + 1));
  const auto numbers = contiguous(sizes, dtype, kind, seed);
  if (mark == std::string::npos) return numbers.to(held);
  const auto way = std::strtoull(word.c_str() + mark + 1, nullptr, 10);
  const auto draw = seed * 31 + way;
  const auto wide = numbers.to(torch::kFloat64);
  if (word[mark] == '@') return shaken(wide, kAside, kAside / 8, draw).to(held);
  if (less == std::string::npos) return shaken(wide, 2 * rounding_of(dtype), 0, draw).to(held);
  moved = {dtype, way};
  return shaken(wide, rounding_of(dtype), 0, draw).to(held);
}

/// A tensor of these sizes whose elements lie so: c in order, t turned, s with gaps, o behind an offset, e with a
/// first dimension of stride 0, f the same numbers without that stride, l channels last.
Tensor laid_out(const std::vector<std::int64_t>& sizes, const std::string& dtype, char layout, const std::string& kind,
                std::uint64_t seed) {
  auto plain = drawn(sizes, dtype, kind, seed);
  const auto dims = static_cast<std::int64_t>(sizes.size());
  if (layout == 't' && dims >= 2) return plain.transpose(0, dims - 1).contiguous().transpose(0, dims - 1);
  if (layout == 's' && dims >= 1) {
    auto wide = sizes;
    wide.back() = wide.back() * 2 + 1;
    auto base = torch::zeros(wide, plain.options());
    auto view = base.slice(dims - 1, 1, wide.back(), 2);
    view.copy_(plain);
    return view;
  }
  if (layout == 'o' && dims >= 1) {
    auto long_sizes = sizes;
    long_sizes[0] += 1;
    auto view = torch::zeros(long_sizes, plain.options()).narrow(0, 1, sizes[0]);
    view.copy_(plain);
    return view;
  }
  if ((layout == 'e' || layout == 'f') && dims >= 1 && sizes[0] > 0) {
    const auto repeated = plain.narrow(0, 0, 1).expand(sizes);
    return layout == 'e' ? repeated : repeated.contiguous();
  }
  if (layout == 'l' && dims == 4) return plain.contiguous(torch::MemoryFormat::ChannelsLast);
  return plain;
}

}  // namespace

const std::string& Arguments::word(std::size_t at) const {
  if (at >= words_.size()) throw BadCall("too few arguments");
  return words_[at];
}

Tensor Arguments::make(const std::string& word) {
  if (word == "N") return {};
  if (word[0] == 'A' || word[0] == 'V') {
    const auto colon = word.find(':');
    auto base = given.at(static_cast<std::size_t>(std::strtoll(word.c_str() + 1, nullptr, 10)));
    if (word[0] == 'V') {
      const char how = word.at(colon + 1);
      if (how == 't' && base.dim() >= 2) base = base.transpose(0, 1);
      if (how == 's' && base.dim() >= 1) base = base.slice(0, 0, base.size(0), 2);
      if (how == 'n' && base.dim() >= 1 && base.size(0) > 1) base = base.narrow(0, 1, base.size(0) - 1);
      if (how == 'e' && base.dim() >= 1 && base.size(0) > 0) base = base.narrow(0, 0, 1).expand(base.sizes());
    }
    given.push_back(base);
    return base;
  }
  const auto parts = split(word, ':');
  if (parts.size() < 6 || parts[0] != "T") throw BadCall("not a tensor: " + word);
  auto made = laid_out(numbers(parts[2], 'x'), parts[1], parts[3].at(0), parts[4],
                       static_cast<std::uint64_t>(std::strtoull(parts[5].c_str(), nullptr, 10)));
  made = made.detach();
  if (parts.size() > 6 && parts[6] == "g") {
    made.requires_grad_(true);
    leaves.push_back(made);
    if (copies_leaves) made = made.clone();
  }
  given.push_back(made);
  return made;
}

Tensor Arguments::tensor(std::size_t at) { return make(word(at)); }

std::vector<Tensor> Arguments::tensors(std::size_t at) {
  const auto& text = word(at);
  std::vector<Tensor> result;
  if (text.size() <= 2) return result;
  for (const auto& part : split(text.substr(1, text.size() - 2), ';')) result.push_back(make(part));
  return result;
}

torch::Scalar Arguments::scalar(std::size_t at) const {
  const auto& text = word(at);
  const std::string value = text.substr(2);
  if (text[1] == 'i') return static_cast<std::int64_t>(std::strtoll(value.c_str(), nullptr, 10));
  if (text[1] == 'b') return value == "1";
  return std::strtod(value.c_str(), nullptr);
}

std::int64_t Arguments::integer(std::size_t at) const { return std::strtoll(word(at).c_str() + 1, nullptr, 10); }
double Arguments::real(std::size_t at) const { return std::strtod(word(at).c_str() + 1, nullptr); }
bool Arguments::truth(std::size_t at) const { return word(at) == "B1"; }
std::string Arguments::text(std::size_t at) const { return word(at).substr(1); }
torch::ScalarType Arguments::dtype(std::size_t at) const { return dtype_of(word(at).substr(1)); }
std::vector<std::int64_t> Arguments::integers(std::size_t at) const { return numbers(word(at).substr(1), ','); }

std::string written(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string line = dtype_name(tensor.scalar_type()) + ":";
  const auto list = [&](auto values) {
    bool first = true;
    for (const auto value : values) {
      if (!std::exchange(first, false)) line += 'x';
      line += std::to_string(value);
    }
    line += ':';
  };
  list(tensor.sizes());
  list(tensor.strides());
  if (tensor.requires_grad()) line += 'r';
  if (tensor.is_view()) line += 'v';
  line += ':';
  const torch::NoGradGuard guard;
  const auto plain = tensor.detach().contiguous();
  const auto bytes = static_cast<std::size_t>(plain.numel()) * static_cast<std::size_t>(plain.element_size());
  const auto* data = static_cast<const unsigned char*>(plain.data_ptr());
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t at = 0; at < bytes; ++at) {
    line += kDigits[data[at] >> 4];
    line += kDigits[data[at] & 15];
  }
  return line;
}

std::string written(const Value& value) { return value.text.empty() ? written(value.tensor) : value.text; }

void begin_call() { moved.reset(); }

Tensor weights(const Tensor& like, std::uint64_t seed) {
  const auto sizes = like.sizes();
  auto plain = contiguous(std::vector<std::int64_t>(sizes.begin(), sizes.end()), torch::kFloat64, "n", seed).mul(0.25);
  if (moved) plain = shaken(plain, rounding_of(moved->dtype), 0, seed * 31 + moved->way);
  return plain.to(like.scalar_type());
}

}  // namespace differential
