// setp and set: of whole numbers, of numbers that may be nan, and combined with another predicate.
#include "support/emulated_cuda/ptx/operation_table.h"

#include <cmath>
#include <type_traits>

namespace tenon::emulated_cuda::ptx {

namespace {

using u64 = std::uint64_t;

enum class Relation { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };

template <class T, Relation kRelation, bool kUnordered, bool kFlush>
bool holds(const u64* in) {
  T a = get<T>(in[0]);
  T b = get<T>(in[1]);
  if constexpr (std::is_floating_point_v<T>) {
    if (kFlush && std::fpclassify(a) == FP_SUBNORMAL) a = 0;
    if (kFlush && std::fpclassify(b) == FP_SUBNORMAL) b = 0;
    const bool nan = std::isnan(a) || std::isnan(b);
    if (kRelation == Relation::kNan) return nan;
    if (kRelation == Relation::kNum) return !nan;
    if (nan) return kUnordered;
  }
  switch (kRelation) {
    case Relation::kEq:
      return a == b;
    case Relation::kNe:
      return a != b;
    case Relation::kLt:
      return a < b;
    case Relation::kLe:
      return a <= b;
    case Relation::kGt:
      return a > b;
    case Relation::kGe:
      return a >= b;
    default:
      return false;
  }
}

template <class T, Relation kRelation, bool kUnordered, bool kFlush>
void add_one(Table& table, const std::string& relation, const std::string& type) {
  const std::string end = (kFlush ? ".ftz" : "") + type;
  table["setp." + relation + end] = {
      [](const u64* in, u64&) { return u64{holds<T, kRelation, kUnordered, kFlush>(in)}; }, 2};
  table["setp." + relation + ".and" + end] = {
      [](const u64* in, u64&) { return u64{holds<T, kRelation, kUnordered, kFlush>(in)} & in[2] & 1; }, 3};
  table["setp." + relation + ".or" + end] = {
      [](const u64* in, u64&) { return (u64{holds<T, kRelation, kUnordered, kFlush>(in)} | in[2]) & 1; }, 3};
  table["setp." + relation + ".xor" + end] = {
      [](const u64* in, u64&) { return (u64{holds<T, kRelation, kUnordered, kFlush>(in)} ^ in[2]) & 1; }, 3};
  for (const char* whole : {".u32", ".s32"}) {
    table["set." + relation + (kFlush ? ".ftz" : "") + whole + type] = {
        [](const u64* in, u64&) { return holds<T, kRelation, kUnordered, kFlush>(in) ? u64{0xffffffffU} : u64{0}; }, 2};
  }
  table["set." + relation + (kFlush ? ".ftz" : "") + ".f32" + type] = {
      [](const u64* in, u64&) { return put(holds<T, kRelation, kUnordered, kFlush>(in) ? 1.0F : 0.0F); }, 2};
}

template <class T>
void add_ordered(Table& table, const std::string& type) {
  add_one<T, Relation::kEq, false, false>(table, "eq", type);
  add_one<T, Relation::kNe, false, false>(table, "ne", type);
  add_one<T, Relation::kLt, false, false>(table, "lt", type);
  add_one<T, Relation::kLe, false, false>(table, "le", type);
  add_one<T, Relation::kGt, false, false>(table, "gt", type);
  add_one<T, Relation::kGe, false, false>(table, "ge", type);
}

template <class T, bool kFlush>
void add_floating(Table& table) {
  const std::string type = std::string(".") + kTypeName<T>;
  add_one<T, Relation::kEq, false, kFlush>(table, "eq", type);
  add_one<T, Relation::kNe, false, kFlush>(table, "ne", type);
  add_one<T, Relation::kLt, false, kFlush>(table, "lt", type);
  add_one<T, Relation::kLe, false, kFlush>(table, "le", type);
  add_one<T, Relation::kGt, false, kFlush>(table, "gt", type);
  add_one<T, Relation::kGe, false, kFlush>(table, "ge", type);
  add_one<T, Relation::kEq, true, kFlush>(table, "equ", type);
  add_one<T, Relation::kNe, true, kFlush>(table, "neu", type);
  add_one<T, Relation::kLt, true, kFlush>(table, "ltu", type);
  add_one<T, Relation::kLe, true, kFlush>(table, "leu", type);
  add_one<T, Relation::kGt, true, kFlush>(table, "gtu", type);
  add_one<T, Relation::kGe, true, kFlush>(table, "geu", type);
  add_one<T, Relation::kNum, false, kFlush>(table, "num", type);
  add_one<T, Relation::kNan, false, kFlush>(table, "nan", type);
}

}  // namespace

void add_comparisons(Table& table) {
  add_ordered<std::uint16_t>(table, ".u16");
  add_ordered<std::int16_t>(table, ".s16");
  add_ordered<std::uint32_t>(table, ".u32");
  add_ordered<std::int32_t>(table, ".s32");
  add_ordered<std::uint64_t>(table, ".u64");
  add_ordered<std::int64_t>(table, ".s64");
  add_ordered<std::uint16_t>(table, ".b16");
  add_ordered<std::uint32_t>(table, ".b32");
  add_ordered<std::uint64_t>(table, ".b64");
  add_floating<float, false>(table);
  add_floating<float, true>(table);
  add_floating<double, false>(table);
}

}  // namespace tenon::emulated_cuda::ptx
