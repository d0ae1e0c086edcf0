// Bits: logic, shifts, fields, counts, moves and choices.
#include "support/emulated_cuda/ptx/operation_table.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace tenon::emulated_cuda::ptx {

namespace {

using u64 = std::uint64_t;

template <class U>
u64 shift_left(const u64* in, u64&) {
  const std::uint32_t by = get<std::uint32_t>(in[1]);
  return by >= 8 * sizeof(U) ? 0 : put<U>(static_cast<U>(get<U>(in[0]) << by));
}
template <class T>
u64 shift_right(const u64* in, u64&) {
  const std::uint32_t by = get<std::uint32_t>(in[1]);
  const T value = get<T>(in[0]);
  if (by >= 8 * sizeof(T)) return put<T>(value < 0 ? static_cast<T>(-1) : T{0});
  return put<T>(static_cast<T>(value >> by));
}

/// A field of up to 255 bits from a position up to 255, as far as it lies in the word.
template <class T>
u64 extract_field(const u64* in, u64&) {
  using U = std::make_unsigned_t<T>;
  constexpr unsigned kBits = 8 * sizeof(T);
  const U word = get<U>(in[0]);
  const unsigned from = in[1] & 0xff;
  const unsigned length = in[2] & 0xff;
  const unsigned top = std::min(from + length, kBits);
  const bool negative =
      std::is_signed_v<T> && length != 0 && ((word >> (std::min(from + length - 1, kBits - 1))) & 1) != 0;
  U field = negative ? static_cast<U>(~U{0}) : U{0};
  for (unsigned bit = from; bit < top; ++bit) {
    const U mask = static_cast<U>(U{1} << (bit - from));
    field = (word >> bit) & 1 ? static_cast<U>(field | mask) : static_cast<U>(field & ~mask);
  }
  return put<U>(field);
}

template <class U>
u64 insert_field(const u64* in, u64&) {
  constexpr unsigned kBits = 8 * sizeof(U);
  U result = get<U>(in[1]);
  const unsigned from = in[2] & 0xff;
  const unsigned length = in[3] & 0xff;
  for (unsigned bit = 0; bit < length && from + bit < kBits; ++bit) {
    const U mask = U{1} << (from + bit);
    result = (get<U>(in[0]) >> bit) & 1 ? result | mask : result & ~mask;
  }
  return put<U>(result);
}

template <class U>
U reversed(U value) {
  U result = 0;
  for (unsigned bit = 0; bit < 8 * sizeof(U); ++bit) result = static_cast<U>(result << 1) | ((value >> bit) & 1);
  return result;
}

/// The position of the highest bit that differs from the sign; all ones if there is none.
template <class T>
u64 find_bit(const u64* in, u64&) {
  using U = std::make_unsigned_t<T>;
  U value = get<U>(in[0]);
  if (get<T>(in[0]) < 0) value = ~value;
  return value == 0 ? 0xffffffffU
                    : static_cast<u64>(8 * sizeof(U) - 1 - static_cast<unsigned>(std::countl_zero(value)));
}

u64 permute(const u64* in, u64&) {
  const u64 bytes = (in[0] & 0xffffffffU) | (in[1] << 32);
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned selector = (in[2] >> (4 * i)) & 0xf;
    std::uint32_t byte = (bytes >> (8 * (selector & 7))) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

u64 three_way_logic(const u64* in, u64&) {
  std::uint32_t result = 0;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const unsigned row =
        static_cast<unsigned>(((in[0] >> bit) & 1) << 2 | ((in[1] >> bit) & 1) << 1 | ((in[2] >> bit) & 1));
    result |= static_cast<std::uint32_t>((in[3] >> row) & 1) << bit;
  }
  return result;
}

template <bool kLeft, bool kWrap>
u64 funnel(const u64* in, u64&) {
  const u64 both = (in[0] & 0xffffffffU) | (in[1] << 32);
  const std::uint32_t asked = get<std::uint32_t>(in[2]);
  const unsigned by = kWrap ? asked & 31 : std::min<std::uint32_t>(asked, 32);
  if (kLeft) return by == 32 ? both & 0xffffffffU : static_cast<std::uint32_t>((both << by) >> 32);
  return static_cast<std::uint32_t>(both >> by);
}

template <class T>
u64 find_shift(const u64* in, u64& carry) {
  const u64 found = find_bit<T>(in, carry);
  return found == 0xffffffffU ? found : 8 * sizeof(T) - 1 - found;
}

template <class U>
void add_width(Table& table, const std::string& width) {
  table["and.b" + width] = {[](const u64* in, u64&) { return put<U>(get<U>(in[0]) & get<U>(in[1])); }, 2};
  table["or.b" + width] = {[](const u64* in, u64&) { return put<U>(get<U>(in[0]) | get<U>(in[1])); }, 2};
  table["xor.b" + width] = {[](const u64* in, u64&) { return put<U>(get<U>(in[0]) ^ get<U>(in[1])); }, 2};
  table["not.b" + width] = {[](const u64* in, u64&) { return put<U>(static_cast<U>(~get<U>(in[0]))); }, 1};
  table["cnot.b" + width] = {[](const u64* in, u64&) { return put<U>(get<U>(in[0]) == 0 ? U{1} : U{0}); }, 1};
  table["shl.b" + width] = {shift_left<U>, 2};
  table["shr.b" + width] = {shift_right<U>, 2};
  table["shr.u" + width] = {shift_right<U>, 2};
  table["shr.s" + width] = {shift_right<std::make_signed_t<U>>, 2};
  for (const char* type : {"b", "u", "s", "f"}) {
    table[std::string("mov.") + type + width] = {[](const u64* in, u64&) { return put<U>(get<U>(in[0])); }, 1};
    table[std::string("selp.") + type + width] = {
        [](const u64* in, u64&) { return put<U>(get<U>(in[2] & 1 ? in[0] : in[1])); }, 3};
  }
}

template <class U>
void add_counts(Table& table, const std::string& width) {
  table["popc.b" + width] = {[](const u64* in, u64&) { return static_cast<u64>(std::popcount(get<U>(in[0]))); }, 1};
  table["clz.b" + width] = {[](const u64* in, u64&) { return static_cast<u64>(std::countl_zero(get<U>(in[0]))); }, 1};
  table["brev.b" + width] = {[](const u64* in, u64&) { return put<U>(reversed(get<U>(in[0]))); }, 1};
  table["bfi.b" + width] = {insert_field<U>, 4};
  table["bfe.u" + width] = {extract_field<U>, 3};
  table["bfe.s" + width] = {extract_field<std::make_signed_t<U>>, 3};
  for (const char* letter : {"u", "s"}) {
    // How far to shift the bit that is found to the top.
    table[std::string("bfind.shiftamt.") + letter + width] = {
        letter[0] == 'u' ? find_shift<U> : find_shift<std::make_signed_t<U>>, 1};
  }
  table["bfind.u" + width] = {find_bit<U>, 1};
  table["bfind.s" + width] = {find_bit<std::make_signed_t<U>>, 1};
}

}  // namespace

void add_bit_operations(Table& table) {
  add_width<std::uint16_t>(table, "16");
  add_width<std::uint32_t>(table, "32");
  add_width<std::uint64_t>(table, "64");
  add_counts<std::uint32_t>(table, "32");
  add_counts<std::uint64_t>(table, "64");
  table["and.pred"] = {[](const u64* in, u64&) { return in[0] & in[1] & 1; }, 2};
  table["or.pred"] = {[](const u64* in, u64&) { return (in[0] | in[1]) & 1; }, 2};
  table["xor.pred"] = {[](const u64* in, u64&) { return (in[0] ^ in[1]) & 1; }, 2};
  table["not.pred"] = {[](const u64* in, u64&) { return ~in[0] & 1; }, 1};
  table["mov.pred"] = {[](const u64* in, u64&) { return in[0] & 1; }, 1};
  table["prmt.b32"] = {permute, 3};
  table["lop3.b32"] = {three_way_logic, 4};
  table["shf.l.wrap.b32"] = {funnel<true, true>, 3};
  table["shf.l.clamp.b32"] = {funnel<true, false>, 3};
  table["shf.r.wrap.b32"] = {funnel<false, true>, 3};
  table["shf.r.clamp.b32"] = {funnel<false, false>, 3};
}

}  // namespace tenon::emulated_cuda::ptx
