// References of floating point: rounded by way of long double, which is exact for directed roundings.
// Long: one short definition for each instruction; all share edges, flushing and roundings.
#include "reference.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tenon::ptx_test {
namespace {

template <class T>
T get(Word word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <class T>
Word put(T value) {
  Word word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

template <class T>
std::vector<Word> edges() {
  using Limits = std::numeric_limits<T>;
  std::vector<Word> words;
  for (const T value :
       {T{0}, T{1}, T(1.5), T(2.5), T(0.1), T{3}, T(1) + Limits::epsilon(), Limits::min(), Limits::min() / 2,
        Limits::denorm_min(), Limits::max(), Limits::infinity(), T(4294967296.0), T(127.5)}) {
    words.push_back(put<T>(value));
    words.push_back(put<T>(-value));
  }
  words.push_back(put<T>(Limits::quiet_NaN()));
  return words;
}

template <class T>
T flush(T value) {
  return value != 0 && std::fabs(value) < std::numeric_limits<T>::min() ? std::copysign(T{0}, value) : value;
}

struct Rounding {
  const char* name;
  int mode;
};
constexpr Rounding kRoundings[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

/// A directed rounding of what is rounded likewise to more digits is that of the exact result; to nearest it is the
/// machine's own operation.
template <class T>
T rounded(int mode, const std::function<long double()>& wide, const std::function<T()>& narrow) {
  std::fesetround(mode);
  volatile T result{};
  if (mode == FE_TONEAREST) {
    result = narrow();
  } else {
    volatile long double exact = wide();
    result = static_cast<T>(exact);
  }
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T>
T arithmetic(char kind, int mode, T x, T y, T z) {
  volatile T a = x, b = y, c = z;
  const auto wide = [&]() -> long double {
    const long double p = a, q = b, r = c;
    switch (kind) {
      case '+':
        return p + q;
      case '-':
        return p - q;
      case '*':
        return p * q;
      case '/':
        return p / q;
      case 'f':
        return std::fma(p, q, r);
      case 's':
        return std::sqrt(p);
      default:
        return 1 / p;
    }
  };
  const auto narrow = [&]() -> T {
    switch (kind) {
      case '+':
        return a + b;
      case '-':
        return a - b;
      case '*':
        return a * b;
      case '/':
        return a / b;
      case 'f':
        return std::fma(T{a}, T{b}, T{c});
      case 's':
        return std::sqrt(T{a});
      default:
        return T{1} / a;
    }
  };
  return rounded<T>(mode, wide, narrow);
}

template <class T>
void add_arithmetic(References& all, const std::string& type) {
  const struct {
    const char* name;
    char kind;
    std::size_t inputs;
    bool plain;
  } kAll[] = {{"add", '+', 2, true},  {"sub", '-', 2, true},   {"mul", '*', 2, true}, {"div", '/', 2, false},
              {"fma", 'f', 3, false}, {"sqrt", 's', 1, false}, {"rcp", 'r', 1, false}};
  for (const auto& one : kAll) {
    std::vector<Word> words = edges<T>();
    if (one.inputs == 3)
      words = {put<T>(0),
               put<T>(T(-0.0)),
               put<T>(T(1.5)),
               put<T>(T(-0.1)),
               put<T>(std::numeric_limits<T>::max()),
               put<T>(std::numeric_limits<T>::denorm_min()),
               put<T>(std::numeric_limits<T>::infinity())};
    const auto cases = choices(words, one.inputs);
    for (const Rounding& rounding : kRoundings) {
      for (const bool flushes : {false, true}) {
        for (const bool saturates : {false, true}) {
          if (sizeof(T) == 8 && (flushes || saturates)) continue;
          const auto want = [=](const Inputs& in) {
            T x[3] = {};
            for (std::size_t i = 0; i < one.inputs; ++i) x[i] = flushes ? flush(get<T>(in[i])) : get<T>(in[i]);
            T result = arithmetic<T>(one.kind, rounding.mode, x[0], x[1], x[2]);
            if (flushes) result = flush(result);
            if (saturates) result = std::isnan(result) || result <= 0 ? T{0} : std::fmin(result, T{1});
            return put<T>(result);
          };
          const std::string middle = std::string(flushes ? ".ftz" : "") + (saturates ? ".sat" : "");
          const Reference reference{one.inputs, 8 * sizeof(T), cases, want};
          all[std::string(one.name) + "." + rounding.name + middle + type] = reference;
          if (one.plain && rounding.mode == FE_TONEAREST) all[std::string(one.name) + middle + type] = reference;
        }
      }
    }
  }
}

template <class T>
T extreme(bool greatest, bool nan_wins, T a, T b) {
  if (std::isnan(a) && std::isnan(b)) return a;
  if (std::isnan(a) || std::isnan(b)) return nan_wins ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  const bool a_below = a < b || (a == b && std::signbit(a) && !std::signbit(b));
  return a_below == greatest ? b : a;
}

template <class T>
void add_simple(References& all, const std::string& type) {
  const auto pairs = choices(edges<T>(), 2);
  const auto ones = choices(edges<T>(), 1);
  const std::size_t bits = 8 * sizeof(T);
  for (const bool greatest : {false, true}) {
    const std::string name = greatest ? "max" : "min";
    for (const bool nan_wins : {false, true})
      all[name + (nan_wins ? ".NaN" : "") + type] = {
          2, bits, pairs,
          [=](const Inputs& in) { return put<T>(extreme(greatest, nan_wins, get<T>(in[0]), get<T>(in[1]))); }};
    if (sizeof(T) == 4)
      all[name + ".ftz" + type] = {
          2, bits, pairs, [=](const Inputs& in) {
            return put<T>(extreme(greatest, false, flush(get<T>(in[0])), flush(get<T>(in[1]))));
          }};
  }
  all["neg" + type] = {1, bits, ones, [](const Inputs& in) { return put<T>(-get<T>(in[0])); }};
  all["abs" + type] = {1, bits, ones, [](const Inputs& in) { return put<T>(std::fabs(get<T>(in[0]))); }};
  all["copysign" + type] = {2, bits, pairs, [](const Inputs& in) {
                              const T magnitude = std::fabs(get<T>(in[1]));
                              return put<T>(std::signbit(get<T>(in[0])) ? -magnitude : magnitude);
                            }};
}

template <class T>
void add_relations(References& all, const std::string& type, bool flushes) {
  const std::string names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  for (const std::string& name : names) {
    const auto holds = [=](const Inputs& in) {
      const T a = flushes ? flush(get<T>(in[0])) : get<T>(in[0]);
      const T b = flushes ? flush(get<T>(in[1])) : get<T>(in[1]);
      const bool nan = a != a || b != b;
      if (name == "num") return !nan;
      if (name == "nan") return nan;
      if (nan) return name.size() == 3;
      const std::string relation = name.substr(0, 2);
      return relation == "eq"   ? a == b
             : relation == "ne" ? a != b
             : relation == "lt" ? a < b
             : relation == "le" ? a <= b
             : relation == "gt" ? a > b
                                : a >= b;
    };
    const std::string end = (flushes ? ".ftz" : "") + type;
    const auto pairs = choices(edges<T>(), 2);
    std::vector<Inputs> triples;
    for (const Inputs& pair : pairs)
      for (const Word predicate : {0, 1}) triples.push_back({pair[0], pair[1], predicate});
    all["setp." + name + end] = {2, 1, pairs, [=](const Inputs& in) { return Word{holds(in)}; }};
    all["setp." + name + ".and" + end] = {3, 1, triples,
                                          [=](const Inputs& in) { return Word{holds(in) && in[2] == 1}; }};
    all["setp." + name + ".or" + end] = {3, 1, triples,
                                         [=](const Inputs& in) { return Word{holds(in) || in[2] == 1}; }};
    all["setp." + name + ".xor" + end] = {3, 1, triples,
                                          [=](const Inputs& in) { return Word{holds(in) != (in[2] == 1)}; }};
    const std::string middle = flushes ? ".ftz" : "";
    for (const char* whole : {".u32", ".s32"})
      all["set." + name + middle + whole + type] = {2, 32, pairs,
                                                    [=](const Inputs& in) { return holds(in) ? Word{0xffffffff} : 0; }};
    all["set." + name + middle + ".f32" + type] = {
        2, 32, pairs, [=](const Inputs& in) { return put<float>(holds(in) ? 1.0F : 0.0F); }};
  }
}

void add_approximate(References& all) {
  const struct {
    const char* name;
    long double (*function)(long double);
  } kAll[] = {
      {"rcp", [](long double x) { return 1 / x; }},         {"rsqrt", [](long double x) { return 1 / std::sqrt(x); }},
      {"sqrt", [](long double x) { return std::sqrt(x); }}, {"ex2", [](long double x) { return std::exp2(x); }},
      {"lg2", [](long double x) { return std::log2(x); }},  {"sin", [](long double x) { return std::sin(x); }},
      {"cos", [](long double x) { return std::cos(x); }},   {"tanh", [](long double x) { return std::tanh(x); }}};
  const auto ones = choices(edges<float>(), 1);
  for (const auto& one : kAll) {
    for (const bool flushes : {false, true}) {
      if (flushes && std::string(one.name) == "tanh") continue;
      all[std::string(one.name) + ".approx" + (flushes ? ".ftz" : "") + ".f32"] = {
          1, 32, ones, [=](const Inputs& in) {
            const float x = flushes ? flush(get<float>(in[0])) : get<float>(in[0]);
            const auto y = static_cast<float>(one.function(x));
            return put<float>(flushes ? flush(y) : y);
          }};
    }
  }
  for (const bool flushes : {false, true}) {
    const auto pairs = choices(edges<float>(), 2);
    for (const char* name : {"div.full", "div.approx"})
      all[std::string(name) + (flushes ? ".ftz" : "") + ".f32"] = {
          2, 32, pairs, [=](const Inputs& in) {
            const float a = flushes ? flush(get<float>(in[0])) : get<float>(in[0]);
            const float b = flushes ? flush(get<float>(in[1])) : get<float>(in[1]);
            const float y = a / b;
            return put<float>(flushes ? flush(y) : y);
          }};
  }
  const auto doubles = choices(edges<double>(), 1);
  const Word upper = 0xffffffff00000000U;
  all["rsqrt.approx.f64"] = {
      1, 64, doubles, [](const Inputs& in) {
        return put<double>(static_cast<double>(1 / std::sqrt(static_cast<long double>(get<double>(in[0])))));
      }};
  all["rsqrt.approx.ftz.f64"] = {
      1, 64, doubles, [=](const Inputs& in) {
        return put<double>(flush(
                   static_cast<double>(1 / std::sqrt(static_cast<long double>(flush(get<double>(in[0] & upper))))))) &
               upper;
      }};
  all["rcp.approx.ftz.f64"] = {1, 64, doubles, [=](const Inputs& in) {
                                 return put<double>(flush(static_cast<double>(
                                            1 / static_cast<long double>(flush(get<double>(in[0] & upper)))))) &
                                        upper;
                               }};
}

long double to_whole(const std::string& rounding, long double x) {
  return rounding == "rni"   ? std::nearbyint(x)
         : rounding == "rzi" ? std::trunc(x)
         : rounding == "rmi" ? std::floor(x)
                             : std::ceil(x);
}

template <class Whole, class From>
void add_float_to_whole(References& all, const std::string& types, bool flushes) {
  for (const char* rounding : {"rni", "rzi", "rmi", "rpi"}) {
    all[std::string("cvt.") + rounding + (flushes ? ".ftz" : "") + types] = {
        1, 8 * sizeof(Whole), choices(edges<From>(), 1), [=](const Inputs& in) {
          long double x = get<From>(in[0]);
          if constexpr (std::is_same_v<From, float>) x = flushes ? flush(get<float>(in[0])) : get<float>(in[0]);
          if (std::isnan(x)) return Word{0};
          x = to_whole(rounding, x);
          const long double least = std::numeric_limits<Whole>::min(), most = std::numeric_limits<Whole>::max();
          return put<Whole>(x <= least  ? std::numeric_limits<Whole>::min()
                            : x >= most ? std::numeric_limits<Whole>::max()
                                        : static_cast<Whole>(x));
        }};
  }
}

template <class To, class Whole>
void add_whole_to_float(References& all, const std::string& types) {
  const std::vector<Word> words = {0,
                                   1,
                                   127,
                                   128,
                                   255,
                                   0x7fff,
                                   0x8000,
                                   0xffff,
                                   16777217,
                                   0x7fffffff,
                                   0x80000001,
                                   0xffffffff,
                                   0x123456789abcdef1,
                                   0x7fffffffffffffff,
                                   ~Word{0}};
  for (const Rounding& rounding : kRoundings) {
    all[std::string("cvt.") + rounding.name + types] = {1, 8 * sizeof(To), choices(words, 1), [=](const Inputs& in) {
                                                          const long double exact =
                                                              get<Whole>(in[0]);  // 64 digits hold it
                                                          std::fesetround(rounding.mode);
                                                          volatile long double x = exact;
                                                          volatile To result = static_cast<To>(x);
                                                          std::fesetround(FE_TONEAREST);
                                                          return put<To>(result);
                                                        }};
  }
}

template <class Whole>
void add_whole_type(References& all, const std::string& name) {
  add_float_to_whole<Whole, float>(all, "." + name + ".f32", false);
  add_float_to_whole<Whole, float>(all, "." + name + ".f32", true);
  add_float_to_whole<Whole, double>(all, "." + name + ".f64", false);
  add_float_to_whole<Whole, _Float16>(all, "." + name + ".f16", false);
  add_whole_to_float<float, Whole>(all, ".f32." + name);
  add_whole_to_float<double, Whole>(all, ".f64." + name);
}

template <class T>
void add_to_whole_float(References& all, const std::string& types, bool flushes) {
  for (const char* rounding : {"rni", "rzi", "rmi", "rpi"})
    all[std::string("cvt.") + rounding + (flushes ? ".ftz" : "") + types] = {
        1, 8 * sizeof(T), choices(edges<T>(), 1), [=](const Inputs& in) {
          const T x = flushes ? flush(get<T>(in[0])) : get<T>(in[0]);
          return put<T>(static_cast<T>(to_whole(rounding, x)));
        }};
}

void add_between_floats(References& all) {
  for (const char* name : {"cvt.sat.f32.f32", "cvt.sat.ftz.f32.f32", "cvt.ftz.sat.f32.f32"}) {
    const bool flushes = std::string(name).find("ftz") != std::string::npos;
    all[name] = {1, 32, choices(edges<float>(), 1), [=](const Inputs& in) {
                   const float x = flushes ? flush(get<float>(in[0])) : get<float>(in[0]);
                   return put<float>(std::isnan(x) || x <= 0 ? 0.0F : std::fmin(x, 1.0F));
                 }};
  }
  all["cvt.f64.f32"] = {1, 64, choices(edges<float>(), 1),
                        [](const Inputs& in) { return put<double>(get<float>(in[0])); }};
  for (const Rounding& rounding : kRoundings)
    all[std::string("cvt.") + rounding.name + ".f32.f64"] = {1, 32, choices(edges<double>(), 1), [=](const Inputs& in) {
                                                               std::fesetround(rounding.mode);
                                                               volatile double x = get<double>(in[0]);
                                                               volatile auto y = static_cast<float>(x);
                                                               std::fesetround(FE_TONEAREST);
                                                               return put<float>(y);
                                                             }};
  std::vector<Inputs> sixteen;
  for (Word bits = 0; bits < 65536; ++bits) sixteen.push_back({bits});
  all["cvt.f32.f16"] = {1, 32, sixteen,
                        [](const Inputs& in) { return put<float>(static_cast<float>(get<_Float16>(in[0]))); }};
  all["cvt.f64.f16"] = {1, 64, sixteen,
                        [](const Inputs& in) { return put<double>(static_cast<double>(get<_Float16>(in[0]))); }};
  all["cvt.f32.bf16"] = {1, 32, sixteen, [](const Inputs& in) { return in[0] << 16; }};
  // All that are a half, and what lies between two of them or next to that.
  std::vector<Inputs> around, around_brain;
  for (Word bits = 0; bits < 0x7c00; bits += 7) {
    const auto here = static_cast<float>(get<_Float16>(bits)), next = static_cast<float>(get<_Float16>(bits + 1));
    const float middle = std::isinf(next) ? 65520.0F : here + (next - here) / 2;
    for (const float x : {here, middle, std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY), -middle})
      around.push_back({put<float>(x)});
  }
  for (Word bits = 0; bits < 0x7f80; bits += 5)
    for (const Word tail : {Word{0}, Word{0x7fff}, Word{0x8000}, Word{0x8001}})
      around_brain.push_back({bits << 16 | tail});
  for (const Word word : edges<float>()) around.push_back({word}), around_brain.push_back({word});
  const auto half = [](auto x) { return x != x ? Word{0x7fff} : put<_Float16>(static_cast<_Float16>(x)); };
  all["cvt.rn.f16.f32"] = {1, 16, around, [=](const Inputs& in) { return half(get<float>(in[0])); }};
  std::vector<Inputs> doubles;
  for (const Inputs& one : around) doubles.push_back({put<double>(get<float>(one[0]))});
  for (const Word word : edges<double>()) doubles.push_back({word});
  all["cvt.rn.f16.f64"] = {1, 16, doubles, [=](const Inputs& in) { return half(get<double>(in[0])); }};
  all["cvt.rn.bf16.f32"] = {1, 16, around_brain, [](const Inputs& in) {
                              if (std::isnan(get<float>(in[0]))) return Word{0x7fff};
                              return ((in[0] + 0x7fff + (in[0] >> 16 & 1)) >> 16) & 0xffff;
                            }};
  // Two at once: the first is the upper half.
  for (const std::string type : {"f16", "bf16"}) {
    const Reference one = all.at("cvt.rn." + type + ".f32");
    std::vector<Inputs> pairs;
    for (std::size_t i = 0; i < one.cases.size(); ++i)
      pairs.push_back({one.cases[i][0], one.cases[(i + 7) % one.cases.size()][0]});
    all["cvt.rn." + type + "x2.f32"] = {
        2, 32, pairs, [want = one.want](const Inputs& in) { return want({in[0]}) << 16 | want({in[1]}); }};
  }
}

}  // namespace

void add_float_references(References& all) {
  add_arithmetic<float>(all, ".f32");
  add_arithmetic<double>(all, ".f64");
  add_simple<float>(all, ".f32");
  add_simple<double>(all, ".f64");
  add_relations<float>(all, ".f32", false);
  add_relations<float>(all, ".f32", true);
  add_relations<double>(all, ".f64", false);
  add_approximate(all);
  add_whole_type<std::uint8_t>(all, "u8");
  add_whole_type<std::int8_t>(all, "s8");
  add_whole_type<std::uint16_t>(all, "u16");
  add_whole_type<std::int16_t>(all, "s16");
  add_whole_type<std::uint32_t>(all, "u32");
  add_whole_type<std::int32_t>(all, "s32");
  add_whole_type<std::uint64_t>(all, "u64");
  add_whole_type<std::int64_t>(all, "s64");
  add_to_whole_float<float>(all, ".f32.f32", false);
  add_to_whole_float<float>(all, ".f32.f32", true);
  add_to_whole_float<double>(all, ".f64.f64", false);
  add_between_floats(all);
}

}  // namespace tenon::ptx_test
