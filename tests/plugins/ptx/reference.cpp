// Whole numbers and bits, in 128 bits or bit by bit.
#include "reference.h"

#include <algorithm>

namespace tenon::ptx_test {

namespace {

using Big = __int128;
using UBig = unsigned __int128;

struct Type {
  const char* name;
  unsigned bits;
  bool is_signed;
};
constexpr Type kTypes[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                           {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

Word low(UBig value, unsigned bits) { return static_cast<Word>(bits == 64 ? value : value & ((UBig{1} << bits) - 1)); }
Big number(Word word, const Type& type) {
  const Word bits = low(word, type.bits);
  if (!type.is_signed || (bits >> (type.bits - 1)) == 0) return static_cast<Big>(bits);
  return static_cast<Big>(bits) - (Big{1} << type.bits);
}

const std::vector<Word> kEdges = {0,
                                  1,
                                  2,
                                  7,
                                  31,
                                  32,
                                  33,
                                  0x7fff,
                                  0x8000,
                                  0xffff,
                                  0x10000,
                                  0x7fffffff,
                                  0x80000000,
                                  0xffffffff,
                                  0x123456789abcdef0,
                                  0x7fffffffffffffff,
                                  0x8000000000000000,
                                  ~Word{0}};
const std::vector<Word> kFewEdges = {0, 1, 3, 0x8000, 0xffff, 0x80000000, 0xfffffffe, 0x9abcdef012345678, ~Word{0}};

/// 64 x 64 bits by halves, since no type holds the product of two unsigned ones with a sign.
Word high_of_64(Word a, Word b) {
  const Word al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
  const Word middle = ((al * bl) >> 32) + ((ah * bl) & 0xffffffff) + ((al * bh) & 0xffffffff);
  return ah * bh + ((ah * bl) >> 32) + ((al * bh) >> 32) + (middle >> 32);
}
Word high(Word a, Word b, const Type& type) {
  if (type.bits < 64) return low(static_cast<UBig>((number(a, type) * number(b, type)) >> type.bits), type.bits);
  Word result = high_of_64(a, b);
  if (type.is_signed) result -= (a >> 63 ? b : 0) + (b >> 63 ? a : 0);
  return result;
}

void add_type(References& all, const Type& type) {
  const unsigned bits = type.bits;
  const std::string end = std::string(".") + type.name;
  const auto pairs = choices(kEdges, 2);
  const auto triples = choices(kFewEdges, 3);
  const auto two = [&](const std::string& name, std::function<Word(Word, Word)> want) {
    all[name + end] = {2, bits, pairs, [want, bits](const Inputs& in) { return low(want(in[0], in[1]), bits); }};
  };
  two("add", [](Word a, Word b) { return a + b; });
  two("sub", [](Word a, Word b) { return a - b; });
  two("mul.lo", [](Word a, Word b) { return a * b; });
  two("mul.hi", [type](Word a, Word b) { return high(a, b, type); });
  two("min", [type](Word a, Word b) { return static_cast<Word>(std::min(number(a, type), number(b, type))); });
  two("max", [type](Word a, Word b) { return static_cast<Word>(std::max(number(a, type), number(b, type))); });
  two("div", [type](Word a, Word b) {
    return number(b, type) == 0 ? ~Word{0} : static_cast<Word>(number(a, type) / number(b, type));
  });
  two("rem", [type](Word a, Word b) {
    return number(b, type) == 0 ? a : static_cast<Word>(number(a, type) % number(b, type));
  });
  all["mad.lo" + end] = {3, bits, triples, [bits](const Inputs& in) { return low(in[0] * in[1] + in[2], bits); }};
  all["mad.hi" + end] = {3, bits, triples,
                         [type, bits](const Inputs& in) { return low(UBig{high(in[0], in[1], type)} + in[2], bits); }};
  if (bits < 64) {
    all["mul.wide" + end] = {2, 2 * bits, pairs, [type, bits](const Inputs& in) {
                               return low(static_cast<UBig>(number(in[0], type) * number(in[1], type)), 2 * bits);
                             }};
    all["mad.wide" + end] = {3, 2 * bits, triples, [type, bits](const Inputs& in) {
                               return low(static_cast<UBig>(number(in[0], type) * number(in[1], type)) + in[2],
                                          2 * bits);
                             }};
  }
  if (type.is_signed) {
    all["neg" + end] = {1, bits, choices(kEdges, 1), [bits](const Inputs& in) { return low(UBig{0} - in[0], bits); }};
    all["abs" + end] = {1, bits, choices(kEdges, 1), [type, bits](const Inputs& in) {
                          const Big value = number(in[0], type);
                          return low(static_cast<UBig>(value < 0 ? -value : value), bits);
                        }};
  }
}

/// The carry that comes in is the low bit of a further input, the one that goes out lies above the result of 32 bits;
/// of 64 bits it is tested through the 32.
void add_carries(References& all, const Type& type) {
  const unsigned bits = type.bits;
  const std::string end = std::string(".") + type.name;
  const auto sum = [&](const std::string& name, bool subtract, bool takes) {
    all[name + end] = {2, bits, choices(kEdges, 2), [bits, subtract, takes](const Inputs& in) {
                         const UBig carry = takes ? in.back() & 1 : 0;
                         return low(subtract ? UBig{in[0]} - in[1] - carry : UBig{in[0]} + in[1] + carry, bits);
                       }};
  };
  sum("add.cc", false, false);
  sum("addc", false, true);
  sum("addc.cc", false, true);
  sum("sub.cc", true, false);
  sum("subc", true, true);
  sum("subc.cc", true, true);
  for (const bool upper : {false, true}) {
    for (const char* name : {"mad.", "madc."}) {
      const bool takes = name[3] == 'c';
      const std::string half = upper ? "hi" : "lo";
      const Reference reference{3, bits, choices(kFewEdges, 3), [type, bits, upper, takes](const Inputs& in) {
                                  const UBig product = upper ? high(in[0], in[1], type) : in[0] * in[1];
                                  return low(product + in[2] + (takes ? in.back() & 1 : 0), bits);
                                }};
      all[name + half + ".cc" + end] = reference;
      if (takes) all[name + half + end] = reference;
    }
  }
}

void add_relations(References& all, const Type& type, const std::string& shown) {
  const auto pairs = choices(kFewEdges, 2);
  const auto add = [&](const std::string& relation, std::function<bool(Big, Big)> holds) {
    const auto value = [type, holds](const Inputs& in) { return holds(number(in[0], type), number(in[1], type)); };
    all["setp." + relation + shown] = {2, 1, pairs, [value](const Inputs& in) { return Word{value(in)}; }};
    const auto triples = choices(kFewEdges, 3);
    all["setp." + relation + ".and" + shown] = {3, 1, triples,
                                                [value](const Inputs& in) { return Word{value(in)} & in[2] & 1; }};
    all["setp." + relation + ".or" + shown] = {3, 1, triples,
                                               [value](const Inputs& in) { return (Word{value(in)} | in[2]) & 1; }};
    all["setp." + relation + ".xor" + shown] = {3, 1, triples,
                                                [value](const Inputs& in) { return (Word{value(in)} ^ in[2]) & 1; }};
    for (const char* whole : {".u32", ".s32"})
      all["set." + relation + whole + shown] = {2, 32, pairs,
                                                [value](const Inputs& in) { return value(in) ? Word{0xffffffff} : 0; }};
    all["set." + relation + ".f32" + shown] = {2, 32, pairs,
                                               [value](const Inputs& in) { return value(in) ? Word{0x3f800000} : 0; }};
  };
  add("eq", [](Big a, Big b) { return a == b; });
  add("ne", [](Big a, Big b) { return a != b; });
  add("lt", [](Big a, Big b) { return a < b; });
  add("le", [](Big a, Big b) { return a <= b; });
  add("gt", [](Big a, Big b) { return a > b; });
  add("ge", [](Big a, Big b) { return a >= b; });
}

Word bit(Word word, unsigned at) { return at > 63 ? 0 : word >> at & 1; }

void add_bits(References& all, unsigned bits) {
  const std::string end = ".b" + std::to_string(bits);
  const std::string width = std::to_string(bits);
  const auto pairs = choices(kEdges, 2);
  const auto logic = [&](const std::string& name, std::function<Word(Word, Word)> want) {
    all[name + end] = {2, bits, pairs, [want, bits](const Inputs& in) { return low(want(in[0], in[1]), bits); }};
  };
  logic("and", [](Word a, Word b) { return a & b; });
  logic("or", [](Word a, Word b) { return a | b; });
  logic("xor", [](Word a, Word b) { return a ^ b; });
  all["not" + end] = {1, bits, choices(kEdges, 1), [bits](const Inputs& in) { return low(~in[0], bits); }};
  all["cnot" + end] = {1, bits, choices(kEdges, 1), [bits](const Inputs& in) { return Word{low(in[0], bits) == 0}; }};
  // Amounts of the width and more shift everything out.
  const auto shift = [&](const std::string& name, bool left, bool keeps_sign) {
    all[name] = {2, bits, pairs, [bits, left, keeps_sign](const Inputs& in) {
                   const Word by = in[1] & 0xffffffff;
                   Word result = 0;
                   for (unsigned i = 0; i < bits; ++i) {
                     const bool inside = left ? i >= by : by < bits && i + by < bits;
                     const Word taken = inside       ? bit(in[0], static_cast<unsigned>(left ? i - by : i + by))
                                        : keeps_sign ? bit(in[0], bits - 1)
                                                     : 0;
                     result |= taken << i;
                   }
                   return result;
                 }};
  };
  shift("shl" + end, true, false);
  shift("shr" + end, false, false);
  shift("shr.u" + width, false, false);
  shift("shr.s" + width, false, true);
  for (const char* type : {"b", "u", "s", "f"}) {
    all[std::string("mov.") + type + width] = {1, bits, choices(kEdges, 1),
                                               [bits](const Inputs& in) { return low(in[0], bits); }};
    all[std::string("selp.") + type + width] = {
        3, bits, choices(kFewEdges, 3), [bits](const Inputs& in) { return low(in[2] % 2 == 1 ? in[0] : in[1], bits); }};
  }
}

void add_counts(References& all, unsigned bits) {
  const std::string end = ".b" + std::to_string(bits);
  const std::string width = std::to_string(bits);
  const auto each = [&](const std::string& name, std::size_t result_bits, std::function<Word(Word)> want) {
    all[name] = {1, result_bits, choices(kEdges, 1), [want](const Inputs& in) { return want(in[0]); }};
  };
  each("popc" + end, 32, [bits](Word a) {
    Word n = 0;
    for (unsigned i = 0; i < bits; ++i) n += bit(a, i);
    return n;
  });
  each("clz" + end, 32, [bits](Word a) {
    Word n = 0;
    while (n < bits && bit(a, bits - 1 - static_cast<unsigned>(n)) == 0) ++n;
    return n;
  });
  each("brev" + end, bits, [bits](Word a) {
    Word r = 0;
    for (unsigned i = 0; i < bits; ++i) r |= bit(a, i) << (bits - 1 - i);
    return r;
  });
  for (const bool is_signed : {false, true}) {
    const std::string letter = is_signed ? "s" : "u";
    each("bfind." + letter + width, 32, [bits, is_signed](Word a) {
      const Word sign = is_signed ? bit(a, bits - 1) : 0;
      for (unsigned i = bits; i-- > 0;)
        if (bit(a, i) != sign) return Word{i};
      return Word{0xffffffff};
    });
    each("bfind.shiftamt." + letter + width, 32, [bits, is_signed](Word a) {
      const Word sign = is_signed ? bit(a, bits - 1) : 0;
      for (unsigned shift = 0; shift < bits; ++shift)
        if (bit(a, bits - 1 - shift) != sign) return Word{shift};
      return Word{0xffffffff};
    });
    const std::vector<Word> positions = {0, 1, 15, 31, 32, 63, 64, 255};
    std::vector<Inputs> cases;
    for (const Word word : kFewEdges)
      for (const Word from : positions)
        for (const Word length : positions) cases.push_back({word, from, length});
    all["bfe." + letter + width] = {
        3, bits, cases, [bits, is_signed](const Inputs& in) {
          const Word sign = is_signed && in[2] != 0
                                ? bit(in[0], static_cast<unsigned>(std::min<Word>(in[1] + in[2] - 1, bits - 1)))
                                : 0;
          Word r = 0;
          for (unsigned i = 0; i < bits; ++i)
            r |= (i < in[2] && in[1] + i < bits ? bit(in[0], static_cast<unsigned>(in[1] + i)) : sign) << i;
          return r;
        }};
    for (Inputs& one : cases) one.insert(one.begin() + 1, 0x5555aaaa3333ccccU);
    all["bfi" + end] = {
        4, bits, cases, [bits](const Inputs& in) {
          Word r = 0;
          for (unsigned i = 0; i < bits; ++i)
            r |= (i >= in[2] && i < in[2] + in[3] ? bit(in[0], static_cast<unsigned>(i - in[2])) : bit(in[1], i)) << i;
          return r;
        }};
  }
}

void add_of_32_bits(References& all) {
  all["prmt.b32"] = {3, 32, choices(kFewEdges, 3), [](const Inputs& in) {
                       Word r = 0;
                       for (unsigned i = 0; i < 4; ++i) {
                         const unsigned pick = in[2] >> (4 * i) & 15;
                         Word byte = ((pick & 4 ? in[1] : in[0]) >> (8 * (pick & 3))) & 255;
                         if (pick >= 8) byte = byte >= 128 ? 255 : 0;
                         r += byte << (8 * i);
                       }
                       return r;
                     }};
  std::vector<Inputs> tables;
  for (Word table = 0; table < 256; ++table) tables.push_back({0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, table});
  all["lop3.b32"] = {4, 32, tables,
                     [](const Inputs& in) { return in[3] * 0x01010101; }};  // the table itself, four times
  for (const bool left : {true, false}) {
    for (const bool wrap : {true, false}) {
      all[std::string("shf.") + (left ? "l." : "r.") + (wrap ? "wrap" : "clamp") + ".b32"] = {
          3, 32, choices(kEdges, 3), [left, wrap](const Inputs& in) {
            const Word asked = in[2] & 0xffffffff;
            const Word by = wrap ? asked % 32 : std::min<Word>(asked, 32);
            const UBig both = (UBig{in[1] & 0xffffffff} << 32) | (in[0] & 0xffffffff);
            return low(left ? (both << by) >> 32 : both >> by, 32);
          }};
    }
  }
  const auto byte_of = [](Word word, unsigned at, bool is_signed) {
    return number(word >> (8 * at), Type{"", 8, is_signed});
  };
  for (const char* types : {".u32.u32", ".u32.s32", ".s32.u32", ".s32.s32"}) {
    const bool left = types[1] == 's', right = types[5] == 's';
    all[std::string("dp4a") + types] = {3, 32, choices(kFewEdges, 3), [=](const Inputs& in) {
                                          Big sum = in[2];
                                          for (unsigned i = 0; i < 4; ++i)
                                            sum += byte_of(in[0], i, left) * byte_of(in[1], i, right);
                                          return low(static_cast<UBig>(sum), 32);
                                        }};
  }
  for (const char* name : {"and", "or", "xor"}) {
    const char kind = name[0];
    all[std::string(name) + ".pred"] = {
        2, 1, choices({0, 1}, 2), [kind](const Inputs& in) {
          return kind == 'a' ? in[0] & in[1] : kind == 'o' ? in[0] | in[1] : in[0] ^ in[1];
        }};
  }
  all["not.pred"] = {1, 1, choices({0, 1}, 1), [](const Inputs& in) { return 1 - in[0]; }};
  all["mov.pred"] = {1, 1, choices({0, 1}, 1), [](const Inputs& in) { return in[0]; }};
}

}  // namespace

std::vector<Inputs> choices(const std::vector<Word>& words, std::size_t count) {
  std::vector<Inputs> all{{}};
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Inputs> longer;
    for (const Inputs& one : all) {
      for (const Word word : words) {
        longer.push_back(one);
        longer.back().push_back(word);
      }
    }
    all = std::move(longer);
  }
  return all;
}

void add_whole_references(References& references) {
  for (const Type& type : kTypes) {
    add_type(references, type);
    add_relations(references, type, std::string(".") + type.name);
    if (!type.is_signed) add_relations(references, type, ".b" + std::to_string(type.bits));
    if (type.bits >= 32) add_carries(references, type);
  }
  for (const unsigned bits : {16U, 32U, 64U}) add_bits(references, bits);
  for (const unsigned bits : {32U, 64U}) add_counts(references, bits);
  add_of_32_bits(references);
  constexpr Type kAll[] = {{"u8", 8, false},   {"s8", 8, true},   {"u16", 16, false}, {"s16", 16, true},
                           {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};
  for (const Type& to : kAll) {
    for (const Type& from : kAll) {
      const std::string types = std::string(".") + to.name + "." + from.name;
      references["cvt" + types] = {1, to.bits, choices(kEdges, 1), [to, from](const Inputs& in) {
                                     return low(static_cast<UBig>(number(in[0], from)), to.bits);
                                   }};
      references["cvt.sat" + types] = {1, to.bits, choices(kEdges, 1), [to, from](const Inputs& in) {
                                         const Big least = to.is_signed ? -(Big{1} << (to.bits - 1)) : 0;
                                         const Big most = (Big{1} << (to.bits - (to.is_signed ? 1 : 0))) - 1;
                                         return low(static_cast<UBig>(std::clamp(number(in[0], from), least, most)),
                                                    to.bits);
                                       }};
    }
  }
}

}  // namespace tenon::ptx_test
