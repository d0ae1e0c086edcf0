// What a plugin that supplies allocators includes: core and memory, neither devices nor kernels.
//
//   class Bump final : public tenon::Allocator { … };
//   TENON_ALLOCATOR(bump, "0.1", Bump, "a rising offset, all given back at the end of the step")
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/memory/factory.h>
#include <tenon/plugin/descriptor.h>
#include <tenon/plugin/host.h>

#include <concepts>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::plugin::detail {

/// An allocator class may declare `static OptionSchema options()`.
template <class T>
OptionSchema options_of() {
  if constexpr (requires {
                  { T::options() } -> std::convertible_to<OptionSchema>;
                }) {
    return T::options();
  } else {
    return {};
  }
}

/// It may declare `static AllocatorTraits traits()`.
template <class T>
AllocatorTraits traits_of() {
  if constexpr (requires {
                  { T::traits() } -> std::convertible_to<AllocatorTraits>;
                }) {
    return T::traits();
  } else {
    return {};
  }
}

/// It is made from the whole context, or from the source alone.
template <class T>
std::unique_ptr<Allocator> make_allocator(const AllocatorContext& context) {
  if constexpr (std::constructible_from<T, const AllocatorContext&>) {
    return std::make_unique<T>(context);
  } else {
    return std::make_unique<T>(context.source);
  }
}

template <class T>
AllocatorInfo allocator_info(std::string_view name, std::string_view summary) {
  return {.name = std::string(name),
          .summary = std::string(summary),
          .options = options_of<T>(),
          .create = &make_allocator<T>,
          .traits = traits_of<T>()};
}

}  // namespace tenon::plugin::detail

/// A plugin that supplies one allocator of the same name. TYPE is constructible from `const tenon::AllocatorContext&`
/// or `tenon::MemorySource&`, and may have `static tenon::OptionSchema options()` and
/// `static tenon::AllocatorTraits traits()`.
#define TENON_ALLOCATOR(NAME, VERSION, TYPE, SUMMARY)                                  \
  static void tenon_register_plugin(::tenon::plugin::Host& host) {                     \
    host.add_allocator(::tenon::plugin::detail::allocator_info<TYPE>(#NAME, SUMMARY)); \
  }                                                                                    \
  TENON_PLUGIN_OF_NAME(#NAME, VERSION, &tenon_register_plugin)
