// The files of a new backend project. @NAME@ is the backend's name, and the kind of its devices.
#pragma once

#include <tenon/cli/new_templates.h>

namespace tenon::cli {

inline constexpr std::string_view kBackendSource =
    R"source(// @NAME@: one device, @NAME@:0. Its memory is this machine's, and its work is done at once: what is said of that is the
// driver's, and the first thing that another device changes. Three kernels: copy, fill and add.
#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/plugin/backend_plugin.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace {
using namespace tenon;
using Views = std::span<const TensorView>;

/// f(T{}) with the element type of a dtype.
template <class F>
void with_type(Dtype dtype, const F& f) {
  switch (dtype) {
#define TYPE(type, constant) case Dtype::constant: return f(type{});
    TENON_FOR_EACH_DTYPE(TYPE)
#undef TYPE
  }
}

/// What elements are computed in: whole numbers modulo 2^64, all others in double.
template <class T>
using Number = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

template <class T, class From>
T converted(From value) {
  if constexpr (std::is_same_v<T, bool>) return value != From(0);
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<std::int64_t>(value));
  else return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

/// Element i, in row-major order of `shape`, of a view that has its sizes or broadcasts to them.
template <class T>
T& element(const TensorView& view, const TensorView& shape, std::int64_t i) {
  std::int64_t offset = 0;
  for (int d = shape.rank - 1; d >= 0; i /= shape.sizes[d--]) {
    const int own = d - (shape.rank - view.rank);
    if (own >= 0 && view.sizes[own] != 1) offset += i % shape.sizes[d] * view.strides[own];
  }
  return view.as<T>()[offset];
}

void fill(KernelContext&, Views outputs, Views, const void* attributes) {
  const ScalarValue& value = static_cast<const FillAttributes*>(attributes)->value;
  const TensorView& y = outputs[0];
  with_type(y.dtype, [&]<class T>(T) {
    const T element_value = std::is_integral_v<T> ? converted<T>(value.integer) : converted<T>(value.real);
    for (std::int64_t i = 0; i < y.element_count(); ++i) element<T>(y, y, i) = element_value;
  });
}

void copy(KernelContext&, Views outputs, Views inputs, const void*) {
  const TensorView &y = outputs[0], &x = inputs[0];
  with_type(y.dtype, [&]<class To>(To) {
    with_type(x.dtype, [&]<class From>(From) {
      for (std::int64_t i = 0; i < y.element_count(); ++i) {
        element<To>(y, y, i) = converted<To>(static_cast<Number<From>>(element<From>(x, y, i)));
      }
    });
  });
}

/// y = a + alpha * b, where a or b may be a number.
void add(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  static const BinaryAttributes kPlain;
  const auto& given = attributes != nullptr ? *static_cast<const BinaryAttributes*>(attributes) : kPlain;
  const TensorView& y = outputs[0];
  with_type(y.dtype, [&]<class T>(T) {
    using N = Number<T>;
    const auto number = [](const ScalarValue& s) {
      return std::is_integral_v<T> ? static_cast<N>(s.integer) : static_cast<N>(s.real);
    };
    const auto operand = [&](int k, ScalarSide side, std::int64_t i) {
      return given.scalar_side == side ? number(given.scalar) : static_cast<N>(element<T>(inputs[k], y, i));
    };
    using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;  // unsigned: wraps
    for (std::int64_t i = 0; i < y.element_count(); ++i) {
      const Sum a = static_cast<Sum>(operand(0, ScalarSide::kLeft, i));
      const Sum b = static_cast<Sum>(operand(1, ScalarSide::kRight, i));
      element<T>(y, y, i) = converted<T>(static_cast<N>(a + static_cast<Sum>(number(given.alpha)) * b));
    }
  });
}

class OwnDriver final : public DeviceDriver {
 public:
  DeviceProperties properties() const override { return {.name = "@NAME@", .host_accessible = true}; }
  MemorySource& memory() override { return memory_; }
  void copy(void* to, const void* from, std::size_t bytes, CopyKind, StreamRef) override {
    if (bytes != 0) std::memmove(to, from, bytes);
  }
  void fill(void* to, std::uint8_t value, std::size_t bytes, StreamRef) override {
    if (bytes != 0) std::memset(to, value, bytes);
  }

 private:
  HostMemorySource memory_{{.device = "@NAME@:0"}};
};

class OwnBackend final : public Backend {
 public:
  std::string name() const override { return "@NAME@"; }
  std::string summary() const override { return "a backend with three kernels"; }
  int device_count() override { return 1; }
  DeviceDriver& device(int index) override {
    if (index != 0) throw Error("there is one device, @NAME@:0");
    if (driver_ == nullptr) driver_ = std::make_unique<OwnDriver>();
    return *driver_;
  }
  void shutdown() noexcept override { driver_.reset(); }

 private:
  std::unique_ptr<OwnDriver> driver_;
};

void register_backend(plugin::Host& host) {
  host.add_backend(std::make_unique<OwnBackend>());
  const DeviceType kind = DeviceType::named("@NAME@");
  host.add_kernel(kind, "copy", &copy);
  host.add_kernel(kind, "fill", &fill);
  host.add_kernel(kind, "add", &add);
}

}  // namespace

TENON_PLUGIN(@NAME@, "0.1", &register_backend)
)source";

inline constexpr std::string_view kBackendCMake = R"cmake(# A backend for Tenon, outside its tree.
cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(Tenon CONFIG REQUIRED)
tenon_add_plugin(@NAME@ @NAME@.cpp)

find_program(TENON_PROGRAM tenon REQUIRED
  HINTS ${Tenon_DIR}/bin ${Tenon_DIR}/../../../bin ${Tenon_DIR}/../../../../bin)
enable_testing()
add_test(NAME @NAME@_is_a_backend COMMAND ${TENON_PROGRAM} plugins info $<TARGET_FILE:tenon_plugin_@NAME@>)
# The conformance suite of kernels is in a build folder of Tenon: -DTenon_DIR=BUILD finds it. What this backend has no kernel for
# is skipped there, by name.
find_program(TENON_KERNEL_CONFORMANCE tenon_kernel_conformance HINTS ${Tenon_DIR}/tests)
if(TENON_KERNEL_CONFORMANCE)
  add_test(NAME @NAME@_kernels_conform COMMAND ${TENON_KERNEL_CONFORMANCE} --gtest_filter=-CpuLevels.*:ThreadPool.*)
  set_tests_properties(@NAME@_kernels_conform PROPERTIES
    ENVIRONMENT TENON_CONFORMANCE_PLUGIN=$<TARGET_FILE:tenon_plugin_@NAME@>)
endif()
)cmake";

inline constexpr std::string_view kBackendReadme = R"md(# @NAME@: a backend for Tenon

    cmake -S . -B build @PACKAGE@ && cmake --build build
    ctest --test-dir build --output-on-failure       # with a build folder of Tenon: the conformance suite of kernels, too
    tenon plugins info build/@NAME@.so

`@NAME@.cpp` has a driver (memory, copies), a backend (its devices) and three kernels. The contracts: `tenon/device/device_driver.h`,
`tenon/memory/memory_source.h`, and `tenon/kernel/kernel.h` with the table of all kernels in the README of Tenon's `framework/tenon/kernel`.
An operator without a kernel is an error that names both; the suite skips what is not there and says so.

A device whose memory the host cannot touch says `host_accessible = false`; the suite then copies operands there and back. One that runs
behind the program says `asynchronous = true`, and the suite waits for it.
)md";

inline constexpr Template kBackendTemplates[] = {{"@NAME@.cpp", kBackendSource},
                                                 {"CMakeLists.txt", kBackendCMake},
                                                 {"README.md", kBackendReadme},
                                                 {".gitignore", "build/\n"}};

}  // namespace tenon::cli
