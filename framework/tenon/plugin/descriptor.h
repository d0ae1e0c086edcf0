// The descriptor: the one symbol that a plugin exports.
//
// It is an `extern "C"` data symbol, tenon_plugin_descriptor. The host reads it from the file before the plugin is
// loaded, hence before any of its code runs, and refuses a mismatch with a sentence that says what to do.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>

namespace tenon::plugin {

class Host;  // host.h

/// Raised when an interface changes in place, when one grows, respectively. A plugin needs the host's major, and a
/// minor that is not newer than the host's.
inline constexpr std::uint16_t kAbiMajor = 2;
inline constexpr std::uint16_t kAbiMinor = 2;

inline constexpr char kMagic[8] = {'T', 'E', 'N', 'O', 'N', 'P', 'L', 'G'};
inline constexpr char kDescriptorSymbol[] = "tenon_plugin_descriptor";

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

/// GCC and Clang share the Itanium C++ ABI; what differs is the standard library and what sanitizers add.
inline constexpr char kBuildTag[] =
#if defined(_LIBCPP_VERSION)
    "itanium/libc++"
#else
    "itanium/libstdc++/cxx11abi=" TENON_STRINGIFY(_GLIBCXX_USE_CXX11_ABI)
#endif
    TENON_SANITIZER;

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

}  // namespace detail
}  // namespace tenon::plugin

/// Makes the translation unit's shared object a plugin: NAME is a bare word, `register_function` takes a Host&.
#define TENON_PLUGIN(NAME, VERSION, register_function) TENON_PLUGIN_OF_NAME(#NAME, VERSION, register_function)

/// The same with the name as a text, for macros that have it as a word: `linux` is a macro of GCC's.
#define TENON_PLUGIN_OF_NAME(NAME, VERSION, register_function)                                           \
  extern "C" __attribute__((visibility("default"),                                                       \
                            used)) constinit const ::tenon::plugin::Descriptor tenon_plugin_descriptor = \
      ::tenon::plugin::detail::describe(NAME, VERSION, register_function);
