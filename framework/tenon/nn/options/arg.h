// TENON_ARG: one field of an options struct, with the fluent setter and the getter of the libtorch front end:
//
//   struct LinearOptions { TENON_ARG(bool, bias) = true; };      LinearOptions(3, 4).bias(false)
#pragma once

#include <utility>

#define TENON_ARG(T, name)                                                       \
 public:                                                                         \
  /** Sets the field, and returns the options; without an argument its value. */ \
  inline auto name(T new_##name)->decltype(*this) {                              \
    this->name##_ = std::move(new_##name);                                       \
    return *this;                                                                \
  }                                                                              \
  inline const T& name() const noexcept { return this->name##_; }                \
  inline T& name() noexcept { return this->name##_; }                            \
                                                                                 \
 private:                                                                        \
  T name##_ /* NOLINT: the initialiser follows the macro */
