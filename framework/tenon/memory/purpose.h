// What a block is for. Every allocation carries a purpose and, if the user set one, a label.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

enum class Purpose : std::uint8_t {
  kOther,
  kParameter,
  kGradient,
  kActivation,
  kOptimizerState,
  kWorkspace,  ///< what a kernel works in
  kData,
  kCast,     ///< parameters in 16 bits that autocast keeps
  kKvCache,  ///< keys and values of the symbols that a language model has seen
};
inline constexpr int kPurposeCount = 9;

/// "other", "parameter", "gradient", "activation", "optimizer_state", "workspace", "data", "cast", "kv_cache".
TENON_API std::string_view name_of(Purpose purpose);

/// Allocations of this thread get `purpose` while the guard lives; guards nest.
class TENON_API PurposeGuard {
 public:
  explicit PurposeGuard(Purpose purpose) noexcept;
  ~PurposeGuard();
  PurposeGuard(const PurposeGuard&) = delete;
  PurposeGuard& operator=(const PurposeGuard&) = delete;

 private:
  Purpose previous_;
};

/// The purpose that the innermost guard of this thread set; kActivation where there is none.
TENON_API Purpose current_purpose() noexcept;

/// A name of the user's own, interned; id 0 is "no label". At most 65,535 labels a process.
class TENON_API LabelGuard {
 public:
  explicit LabelGuard(std::string_view label);
  ~LabelGuard();
  LabelGuard(const LabelGuard&) = delete;
  LabelGuard& operator=(const LabelGuard&) = delete;

 private:
  std::uint16_t previous_;
};

TENON_API std::uint16_t current_label() noexcept;
TENON_API std::string label_name(std::uint16_t label);

}  // namespace tenon
