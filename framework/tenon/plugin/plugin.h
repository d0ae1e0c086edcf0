// The plugin boundary: C at the door, C++ in the room.
//
// A plugin exports one `extern "C"` data symbol, tenon_plugin_descriptor. The host reads it from the file before the
// plugin is loaded, hence before any of its code runs, and refuses a mismatch with a sentence that says what to do.
// After that everything is the C++ interfaces of core, memory, device and kernel.
//
//   class Bump final : public tenon::Allocator { … };
//   TENON_ALLOCATOR(bump, "0.1", Bump, "a rising offset, all given back at the end of the step")
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/kernel/kernel.h>
#include <tenon/memory/factory.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tenon::plugin {

/// Raised when an interface changes in place, when one grows, respectively. A plugin needs the host's major, and a
/// minor that is not newer than the host's.
inline constexpr std::uint16_t kAbiMajor = 2;
inline constexpr std::uint16_t kAbiMinor = 0;

inline constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'P', 'L', 'G'};
inline constexpr char kDescriptorSymbol[] = "tenon_plugin_descriptor";

enum class LogLevel { kDebug, kInfo, kWarning };

/// What a plugin's register function talks to.
class TENON_EXPORT Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host();

  /// Throws PluginError when the name is taken, naming both plugins.
  virtual void add_allocator(AllocatorInfo info) = 0;
  virtual void add_backend(std::unique_ptr<Backend> backend) = 0;
  /// A kernel of one device kind for one operator; the last one registered wins.
  virtual void add_kernel(DeviceType type, std::string_view operator_name, Kernel kernel) = 0;
  virtual void log(LogLevel level, std::string_view message) = 0;
};

/// Fixed-size fields only, so that it can be read from the file's bytes.
struct Descriptor {
  char magic[8];
  std::uint32_t struct_size;
  std::uint16_t abi_major;
  std::uint16_t abi_minor;
  char build_tag[64];  ///< compiler, C++ ABI, sanitizers: see kBuildTag
  char name[64];
  char version[32];
  void (*register_plugin)(Host& host);
};

#define TENON_STRINGIFY_(x) #x
#define TENON_STRINGIFY(x) TENON_STRINGIFY_(x)
#if defined(__SANITIZE_ADDRESS__)
#define TENON_TAG_SANITIZER "+asan"
#elif defined(__SANITIZE_THREAD__)
#define TENON_TAG_SANITIZER "+tsan"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_TAG_SANITIZER "+asan"
#elif __has_feature(thread_sanitizer)
#define TENON_TAG_SANITIZER "+tsan"
#endif
#endif
#if !defined(TENON_TAG_SANITIZER)
#define TENON_TAG_SANITIZER ""
#endif

/// GCC and Clang share the Itanium C++ ABI; what differs is the standard library and what sanitizers add.
inline constexpr char kBuildTag[] =
#if defined(_LIBCPP_VERSION)
    "itanium/libc++"
#else
    "itanium/libstdc++/cxx11abi=" TENON_STRINGIFY(_GLIBCXX_USE_CXX11_ABI)
#endif
    TENON_TAG_SANITIZER;

namespace detail {

template <std::size_t N, std::size_t M>
consteval void put(char (&field)[N], const char (&text)[M]) {
  static_assert(M <= N, "too long for the plugin descriptor");
  for (std::size_t i = 0; i < M; ++i) field[i] = text[i];
}

template <std::size_t N, std::size_t V>
consteval Descriptor describe(const char (&name)[N], const char (&version)[V], void (*register_plugin)(Host&)) {
  Descriptor descriptor{};
  for (int i = 0; i < 8; ++i) descriptor.magic[i] = kMagic[i];
  descriptor.struct_size = sizeof(Descriptor);
  descriptor.abi_major = kAbiMajor;
  descriptor.abi_minor = kAbiMinor;
  put(descriptor.build_tag, kBuildTag);
  put(descriptor.name, name);
  put(descriptor.version, version);
  descriptor.register_plugin = register_plugin;
  return descriptor;
}

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

}  // namespace detail
}  // namespace tenon::plugin

/// Makes the translation unit's shared object a plugin: NAME is a bare word, `register_function` takes a Host&.
#define TENON_PLUGIN(NAME, VERSION, register_function)                                                   \
  extern "C" __attribute__((visibility("default"),                                                       \
                            used)) constinit const ::tenon::plugin::Descriptor tenon_plugin_descriptor = \
      ::tenon::plugin::detail::describe(#NAME, VERSION, register_function);

/// A plugin that supplies one allocator of the same name. TYPE is constructible from `const tenon::AllocatorContext&`
/// or `tenon::MemorySource&`, and may have `static tenon::OptionSchema options()` and
/// `static tenon::AllocatorTraits traits()`.
#define TENON_ALLOCATOR(NAME, VERSION, TYPE, SUMMARY)                                  \
  static void tenon_register_plugin(::tenon::plugin::Host& host) {                     \
    host.add_allocator(::tenon::plugin::detail::allocator_info<TYPE>(#NAME, SUMMARY)); \
  }                                                                                    \
  TENON_PLUGIN(NAME, VERSION, &tenon_register_plugin)
