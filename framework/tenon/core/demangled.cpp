// What the C++ runtime makes of a mangled name.
#include <tenon/core/demangled.h>

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace tenon {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                             &std::free);
  return status == 0 && readable != nullptr ? std::string(readable.get()) : std::string(name);
}

}  // namespace tenon
