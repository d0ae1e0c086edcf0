// References of float16 and bfloat16: the nearer of two neighbours, found by search from the result in 113 digits and
// the sign of what they leave out.
#include "reference.h"

#include <cmath>
#include <cstring>
#include <string>

namespace tenon::ptx_test {
namespace {

using Exact = __float128;

/// A format of 16 bits: where its exponent begins, and what that is at zero.
struct Format {
  const char* name;
  int digits;     ///< of the fraction
  int least;      ///< exponent of the smallest normal number
  Word infinity;  ///< its bits
};
constexpr Format kFormats[] = {{"f16", 10, -14, 0x7c00}, {"bf16", 7, -126, 0x7f80}};

bool is_nan(const Format& f, Word bits) { return (bits & 0x7fff) > f.infinity; }

/// Of a magnitude; what follows the largest number has its place, too.
Exact magnitude(const Format& f, Word bits) {
  const int exponent = static_cast<int>(bits >> f.digits);
  const Word fraction = bits & ((Word{1} << f.digits) - 1);
  const double whole = static_cast<double>(exponent == 0 ? fraction : fraction + (Word{1} << f.digits));
  const int power = (exponent == 0 ? 1 : exponent) - 1 + f.least - f.digits;
  return static_cast<Exact>(whole) * static_cast<Exact>(std::ldexp(1.0, power));
}
Exact value(const Format& f, Word bits) {
  const Word size = bits & 0x7fff;
  const Exact positive = size == f.infinity ? static_cast<Exact>(INFINITY) : magnitude(f, size);
  return bits & 0x8000 ? -positive : positive;
}

/// Of x + rest, where rest decides between neighbours that are equally near.
Word nearest(const Format& f, Exact x, Exact rest, bool negative_zero) {
  if (x != x) return 0x7fff;
  const bool negative = x < 0 || (x == 0 && negative_zero);
  const Exact size = x < 0 ? -x : x;
  const Exact more = negative ? -rest : rest;
  Word low = 0, high = f.infinity;  // the largest that is at most x, and its neighbour
  if (size >= magnitude(f, high)) low = high - 1;
  while (high - low > 1) {
    const Word middle = (low + high) / 2;
    (magnitude(f, middle) <= size ? low : high) = middle;
  }
  const Exact below = size - magnitude(f, low), above = magnitude(f, low + 1) - size;
  const bool down = below != above ? below < above : more != 0 ? more < 0 : low % 2 == 0;
  return (down ? low : low + 1) | (negative ? 0x8000 : 0);
}

/// a + b and what is lost of it (Knuth's two-sum).
Word sum(const Format& f, Exact a, Exact b, bool negative_zero) {
  const Exact total = a + b, part = total - a;
  return nearest(f, total, (a - (total - part)) + (b - part), negative_zero);
}

bool negative(Word bits) { return (bits & 0x8000) != 0; }

Word arithmetic(const Format& f, const std::string& name, const Word* in) {
  for (std::size_t i = 0; i < (name == "fma" ? 3U : 2U); ++i)
    if (is_nan(f, in[i])) return 0x7fff;
  const Exact a = value(f, in[0]), b = value(f, in[1]);
  const Word minus_b = in[1] ^ 0x8000;
  const bool negative_product = negative(in[0]) != negative(in[1]);
  if (name == "add") return sum(f, a, b, negative(in[0]) && negative(in[1]));
  if (name == "sub") return sum(f, a, -b, negative(in[0]) && negative(minus_b));
  if (name == "mul") return nearest(f, a * b, 0, negative_product);
  return sum(f, a * b, value(f, in[2]), negative_product && negative(in[2]));
}

Word extreme(const Format& f, bool greatest, bool nan_wins, Word a, Word b) {
  if (is_nan(f, a) || is_nan(f, b)) return nan_wins || (is_nan(f, a) && is_nan(f, b)) ? 0x7fff : is_nan(f, a) ? b : a;
  const bool a_below = value(f, a) < value(f, b) || (value(f, a) == value(f, b) && negative(a) && !negative(b));
  return a_below == greatest ? b : a;
}

/// A reference of single elements, and that of pairs: the second element of a case is the first of the next.
void add(References& all, const std::string& name, const std::string& type, std::size_t inputs,
         const std::vector<Inputs>& cases, const std::function<Word(const Word*)>& want) {
  all[name + type] = {inputs, 16, cases, [want](const Inputs& in) { return want(in.data()); }};
  std::vector<Inputs> pairs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Inputs both = cases[i];
    for (std::size_t k = 0; k < inputs; ++k) both[k] |= cases[(i + 1) % cases.size()][k] << 16;
    pairs.push_back(both);
  }
  all[name + type + "x2"] = {inputs, 32, pairs, [want, inputs](const Inputs& in) {
                               Word low[3] = {}, high[3] = {};
                               for (std::size_t k = 0; k < inputs; ++k) low[k] = in[k] & 0xffff, high[k] = in[k] >> 16;
                               return want(low) | want(high) << 16;
                             }};
}

void add_format(References& all, const Format& f) {
  const std::string type = std::string(".") + f.name;
  const Word one = static_cast<Word>(-f.least + 1 - 1) << f.digits;  // exponent 0
  std::vector<Word> words = {0,
                             1,
                             2,
                             (Word{1} << f.digits) - 1,
                             Word{1} << f.digits,
                             one,
                             one + 1,
                             one + 3,
                             one * 3 / 4,
                             f.infinity - 1,
                             f.infinity - 2,
                             f.infinity,
                             0x7fff};
  for (std::size_t i = words.size(); i-- > 0;) words.push_back(words[i] | 0x8000);
  const auto pairs = choices(words, 2);
  for (const char* name : {"add", "sub", "mul"}) {
    for (const char* rounding : {"", ".rn"}) {
      add(all, std::string(name) + rounding, type, 2, pairs,
          [&f, name](const Word* in) { return arithmetic(f, name, in); });
    }
  }
  add(all, "fma.rn", type, 3, choices(words, 3), [&f](const Word* in) { return arithmetic(f, "fma", in); });
  add(all, "neg", type, 1, choices(words, 1), [](const Word* in) { return in[0] ^ 0x8000; });
  add(all, "abs", type, 1, choices(words, 1), [](const Word* in) { return in[0] & 0x7fff; });
  for (const bool greatest : {false, true}) {
    for (const bool nan_wins : {false, true}) {
      add(all, std::string(greatest ? "max" : "min") + (nan_wins ? ".NaN" : ""), type, 2, pairs,
          [&f, greatest, nan_wins](const Word* in) { return extreme(f, greatest, nan_wins, in[0], in[1]); });
    }
  }
  for (const std::string relation : {"eq", "ne", "lt", "le", "gt", "ge"}) {
    for (const bool unordered : {false, true}) {
      all["setp." + relation + (unordered ? "u" : "") + type] = {2, 1, pairs,
                                                                 [&f, relation, unordered](const Inputs& in) -> Word {
                                                                   if (is_nan(f, in[0]) || is_nan(f, in[1]))
                                                                     return unordered;
                                                                   const Exact a = value(f, in[0]), b = value(f, in[1]);
                                                                   return relation == "eq"   ? a == b
                                                                          : relation == "ne" ? a != b
                                                                          : relation == "lt" ? a < b
                                                                          : relation == "le" ? a <= b
                                                                          : relation == "gt" ? a > b
                                                                                             : a >= b;
                                                                 }};
    }
  }
}

}  // namespace

void add_half_references(References& references) {
  for (const Format& format : kFormats) add_format(references, format);
}

}  // namespace tenon::ptx_test
