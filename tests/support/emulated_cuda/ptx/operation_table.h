// How the files of operations fill the table, and how they see typed values in words.
#pragma once

#include "support/emulated_cuda/ptx/operations.h"

#include <cstring>
#include <string>
#include <unordered_map>

namespace tenon::emulated_cuda::ptx {

using Table = std::unordered_map<std::string, Operation>;

void add_integer_operations(Table& table);
void add_bit_operations(Table& table);
void add_float_operations(Table& table);
void add_half_operations(Table& table);
void add_comparisons(Table& table);
void add_conversions(Table& table);

template <class T>
T get(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

template <class T>
std::uint64_t put(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

/// The names of types in opcodes.
template <class T>
inline constexpr const char* kTypeName = nullptr;
template <>
inline constexpr const char* kTypeName<std::uint8_t> = "u8";
template <>
inline constexpr const char* kTypeName<std::int8_t> = "s8";
template <>
inline constexpr const char* kTypeName<std::uint16_t> = "u16";
template <>
inline constexpr const char* kTypeName<std::int16_t> = "s16";
template <>
inline constexpr const char* kTypeName<std::uint32_t> = "u32";
template <>
inline constexpr const char* kTypeName<std::int32_t> = "s32";
template <>
inline constexpr const char* kTypeName<std::uint64_t> = "u64";
template <>
inline constexpr const char* kTypeName<std::int64_t> = "s64";
template <>
inline constexpr const char* kTypeName<float> = "f32";
template <>
inline constexpr const char* kTypeName<double> = "f64";

}  // namespace tenon::emulated_cuda::ptx
