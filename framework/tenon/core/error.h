// Errors that a user can cause or meet. Each names the thing, the numbers and the next step; our own bugs assert
// instead.
#pragma once

#include <tenon/core/export.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tenon {

/// Exit codes of the `tenon` program, fixed by contract.
enum class ExitCode : int { kDone = 0, kFailed = 1, kUsage = 2, kGate = 3, kOutOfMemory = 4, kPlugin = 5 };

/// The base of everything that Tenon throws. `what()` is one complete message for people.
class TENON_EXPORT Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  ~Error() override;
  /// libtorch's names for the message; Tenon appends no backtrace.
  const char* what_without_backtrace() const noexcept { return what(); }
  std::string msg() const { return what(); }
  /// What a program that ends with this error should return.
  virtual ExitCode exit_code() const noexcept;
};

/// Wrong usage or configuration: exit code 2. The message begins with `file:line:column:` where there is a file.
class TENON_EXPORT ConfigError : public Error {
 public:
  using Error::Error;
  ~ConfigError() override;
  ExitCode exit_code() const noexcept override;
};

/// A plugin that cannot be loaded: exit code 5.
class TENON_EXPORT PluginError : public Error {
 public:
  using Error::Error;
  ~PluginError() override;
  ExitCode exit_code() const noexcept override;
};

/// Index outside a dimension (libtorch: c10::IndexError).
class TENON_EXPORT IndexError : public Error {
 public:
  using Error::Error;
  ~IndexError() override;
};

/// An argument that is of the right type but out of the question (libtorch: c10::ValueError).
class TENON_EXPORT ValueError : public Error {
 public:
  using Error::Error;
  ~ValueError() override;
};

/// An argument of the wrong type (libtorch: c10::TypeError).
class TENON_EXPORT TypeError : public Error {
 public:
  using Error::Error;
  ~TypeError() override;
};

/// What could be asked for but has no implementation (libtorch: c10::NotImplementedError).
class TENON_EXPORT NotImplementedError : public Error {
 public:
  using Error::Error;
  ~NotImplementedError() override;
};

/// The figures at the moment a request could not be served. All sizes in bytes.
struct OutOfMemoryInfo {
  std::string allocator;               ///< name of the policy
  std::string device;                  ///< "cuda:0"
  std::size_t requested_bytes = 0;     ///< what was asked for
  std::size_t allocated_bytes = 0;     ///< in blocks handed out, after rounding
  std::size_t reserved_bytes = 0;      ///< taken from the device
  std::size_t device_free_bytes = 0;   ///< what the device has left
  std::size_t capacity_bytes = 0;      ///< the device's, 0 when unlimited
  std::size_t limit_bytes = 0;         ///< a configured limit below the capacity, 0 when none
  std::size_t largest_free_bytes = 0;  ///< largest cached block, 0 when unknown
  std::string hint;                    ///< what would have helped; empty when nothing is known
};

/// A request that the allocator could not serve. The allocator's state is as before the request.
class TENON_EXPORT OutOfMemory : public Error {
 public:
  explicit OutOfMemory(OutOfMemoryInfo info);
  ~OutOfMemory() override;
  ExitCode exit_code() const noexcept override;
  const OutOfMemoryInfo& info() const noexcept { return info_; }

 private:
  OutOfMemoryInfo info_;
};

using OutOfMemoryError = OutOfMemory;

/// Reports a broken invariant of ours and aborts. Never for user mistakes.
[[noreturn]] TENON_API void assertion_failed(const char* expression, const char* file, int line,
                                             const char* message) noexcept;

}  // namespace tenon

/// Holds in every build: our own invariants, cheap enough to keep.
#define TENON_ASSERT(condition, message)               \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::tenon::assertion_failed(#condition, __FILE__, __LINE__, message))
