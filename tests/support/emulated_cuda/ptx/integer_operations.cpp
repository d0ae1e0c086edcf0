// Whole numbers: sums, products, quotients, carries.
#include "support/emulated_cuda/ptx/operation_table.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace tenon::emulated_cuda::ptx {

namespace {

using i32 = std::int32_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Wide = unsigned __int128;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// The product in twice the width.
template <class T>
auto product(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<__int128>(a) * b;
  } else {
    return static_cast<Wide>(a) * b;
  }
}

template <class T>
u64 high(u64 a, u64 b) {
  return put<T>(static_cast<T>(product(get<T>(a), get<T>(b)) >> (8 * sizeof(T))));
}

/// PTX says nothing of x / 0; the hardware gives all ones, and x for the remainder.
template <class T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(~Unsigned<T>{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(a));
  }
  return static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}

template <class T>
void add_type(Table& table) {
  using U = Unsigned<T>;
  const std::string type = std::string(".") + kTypeName<T>;
  table["add" + type] = {[](const u64* in, u64&) { return put<U>(static_cast<U>(get<U>(in[0]) + get<U>(in[1]))); }, 2};
  table["sub" + type] = {[](const u64* in, u64&) { return put<U>(static_cast<U>(get<U>(in[0]) - get<U>(in[1]))); }, 2};
  table["mul.lo" + type] = {
      [](const u64* in, u64&) { return put<U>(static_cast<U>(Wide{get<U>(in[0])} * get<U>(in[1]))); }, 2};
  table["mul.hi" + type] = {[](const u64* in, u64&) { return high<T>(in[0], in[1]); }, 2};
  table["mad.lo" + type] = {
      [](const u64* in, u64&) { return put<U>(static_cast<U>(Wide{get<U>(in[0])} * get<U>(in[1]) + get<U>(in[2]))); },
      3};
  table["mad.hi" + type] = {
      [](const u64* in, u64&) { return put<U>(static_cast<U>(get<U>(high<T>(in[0], in[1])) + get<U>(in[2]))); }, 3};
  if constexpr (sizeof(T) < 8) {
    table["mul.wide" + type] = {[](const u64* in, u64&) {
                                  return static_cast<u64>(product(get<T>(in[0]), get<T>(in[1]))) &
                                         (~u64{0} >> (64 - 16 * sizeof(T)));
                                },
                                2};
    table["mad.wide" + type] = {[](const u64* in, u64&) {
                                  return (static_cast<u64>(product(get<T>(in[0]), get<T>(in[1]))) + in[2]) &
                                         (~u64{0} >> (64 - 16 * sizeof(T)));
                                },
                                3};
  }
  table["div" + type] = {[](const u64* in, u64&) { return put<T>(quotient(get<T>(in[0]), get<T>(in[1]))); }, 2};
  table["rem" + type] = {[](const u64* in, u64&) { return put<T>(remainder(get<T>(in[0]), get<T>(in[1]))); }, 2};
  table["min" + type] = {[](const u64* in, u64&) { return put<T>(std::min(get<T>(in[0]), get<T>(in[1]))); }, 2};
  table["max" + type] = {[](const u64* in, u64&) { return put<T>(std::max(get<T>(in[0]), get<T>(in[1]))); }, 2};
  if constexpr (std::is_signed_v<T>) {
    table["neg" + type] = {[](const u64* in, u64&) { return put<U>(static_cast<U>(U{0} - get<U>(in[0]))); }, 1};
    table["abs" + type] = {
        [](const u64* in, u64&) {
          const T value = get<T>(in[0]);
          return put<U>(value < 0 ? static_cast<U>(U{0} - static_cast<U>(value)) : static_cast<U>(value));
        },
        1};
  }
}

template <class U>
u64 add_and_carry(U a, U b, u64 before, u64& carry) {
  const Wide sum = Wide{a} + b + before;
  carry = static_cast<u64>(sum >> (8 * sizeof(U))) & 1;
  return put<U>(static_cast<U>(sum));
}
/// The flag is a borrow here: 1 where the difference was negative.
template <class U>
u64 subtract_and_borrow(U a, U b, u64 before, u64& carry) {
  const Wide difference = Wide{a} - b - before;
  carry = static_cast<u64>(difference >> (8 * sizeof(U))) & 1;
  return put<U>(static_cast<U>(difference));
}

template <class U>
void add_carries(Table& table, const std::string& type) {
  table["add.cc" + type] = {[](const u64* in, u64& c) { return add_and_carry(get<U>(in[0]), get<U>(in[1]), 0, c); }, 2};
  table["addc.cc" + type] = {[](const u64* in, u64& c) { return add_and_carry(get<U>(in[0]), get<U>(in[1]), c, c); },
                             2};
  table["addc" + type] = {[](const u64* in, u64& c) {
                            u64 unused = 0;
                            return add_and_carry(get<U>(in[0]), get<U>(in[1]), c, unused);
                          },
                          2};
  table["sub.cc" + type] = {
      [](const u64* in, u64& c) { return subtract_and_borrow(get<U>(in[0]), get<U>(in[1]), 0, c); }, 2};
  table["subc.cc" + type] = {
      [](const u64* in, u64& c) { return subtract_and_borrow(get<U>(in[0]), get<U>(in[1]), c, c); }, 2};
  table["subc" + type] = {[](const u64* in, u64& c) {
                            u64 unused = 0;
                            return subtract_and_borrow(get<U>(in[0]), get<U>(in[1]), c, unused);
                          },
                          2};
}

template <class T, bool kHigh>
Unsigned<T> half_product(const u64* in) {
  using U = Unsigned<T>;
  return kHigh ? get<U>(high<T>(in[0], in[1])) : static_cast<U>(Wide{get<U>(in[0])} * get<U>(in[1]));
}

template <class T, bool kHigh>
void add_products_with_carry(Table& table) {
  using U = Unsigned<T>;
  const std::string end = std::string(kHigh ? ".hi" : ".lo");
  const std::string type = std::string(".") + kTypeName<T>;
  table["mad" + end + ".cc" + type] = {
      [](const u64* in, u64& c) { return add_and_carry(half_product<T, kHigh>(in), get<U>(in[2]), 0, c); }, 3};
  table["madc" + end + ".cc" + type] = {
      [](const u64* in, u64& c) { return add_and_carry(half_product<T, kHigh>(in), get<U>(in[2]), c, c); }, 3};
  table["madc" + end + type] = {[](const u64* in, u64& c) {
                                  u64 unused = 0;
                                  return add_and_carry(half_product<T, kHigh>(in), get<U>(in[2]), c, unused);
                                },
                                3};
}

template <class T>
void add_carrying_type(Table& table) {
  add_carries<Unsigned<T>>(table, std::string(".") + kTypeName<T>);
  add_products_with_carry<T, false>(table);
  add_products_with_carry<T, true>(table);
}

/// c + the sum of four products of bytes.
template <class A, class B>
u64 four_products(const u64* in, u64&) {
  u32 sum = get<u32>(in[2]);
  for (unsigned byte = 0; byte < 4; ++byte)
    sum += static_cast<u32>(i32{get<A>(in[0] >> (8 * byte))} * i32{get<B>(in[1] >> (8 * byte))});
  return put<u32>(sum);
}

}  // namespace

void add_integer_operations(Table& table) {
  add_type<std::uint16_t>(table);
  add_type<std::int16_t>(table);
  add_type<std::uint32_t>(table);
  add_type<std::int32_t>(table);
  add_type<std::uint64_t>(table);
  add_type<std::int64_t>(table);
  add_carrying_type<std::uint32_t>(table);
  add_carrying_type<std::int32_t>(table);
  add_carrying_type<std::uint64_t>(table);
  add_carrying_type<std::int64_t>(table);
  table["dp4a.u32.u32"] = {four_products<std::uint8_t, std::uint8_t>, 3};
  table["dp4a.u32.s32"] = {four_products<std::uint8_t, std::int8_t>, 3};
  table["dp4a.s32.u32"] = {four_products<std::int8_t, std::uint8_t>, 3};
  table["dp4a.s32.s32"] = {four_products<std::int8_t, std::int8_t>, 3};
}

}  // namespace tenon::emulated_cuda::ptx
