// CheckedSource: a source that checks its caller. It compares every call of a policy with what it has given out, can
// refuse any one call, and knows whether an address has memory behind it.
#pragma once

#include <tenon/memory/forwarding.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tenon::conformance {

/// Which call to the source fails: the `index`-th, counted from 0, and with `from_then_on` every later one too.
struct Fault {
  std::int64_t index = -1;  ///< -1: none
  bool from_then_on = false;
  bool order_calls_too = false;  ///< mark, reached, wait, synchronize: they fail only when a device is lost
};

/// Physical bytes, numbered in the order in which they were created.
struct PhysicalExtent {
  std::uint64_t begin = 0, end = 0;
};

class CheckedSource final : public ForwardingSource {
 public:
  explicit CheckedSource(MemorySource& upstream, Fault fault = {});

  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  void* reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  Ticket mark(StreamRef stream) override;
  bool reached(Ticket ticket) override;
  void wait(Ticket ticket) override;
  void synchronize() override;
  /// None: what is judged are a policy's own calls.
  std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& /*options*/) override { return nullptr; }

  /// Asked before memory goes back to the device: who still uses [address, address + bytes), empty for nobody.
  using StillUsed = std::function<std::string(std::uintptr_t address, std::size_t bytes)>;
  void watch_releases(StillUsed still_used) { still_used_ = std::move(still_used); }

  /// Told of each misuse. A lock of this source is held meanwhile.
  void when_misused(std::function<void(const std::string& what)> told) { when_misused_ = std::move(told); }

  /// Calls that could have failed.
  std::int64_t fallible_calls() const;
  /// Requests for memory that the device below refused.
  std::int64_t refusals() const;
  void stop_faults();
  std::size_t reserved_bytes() const;
  /// Whether all of it is memory that the source gave and did not take back.
  bool covers(std::uintptr_t address, std::size_t bytes) const;
  /// The physical memory behind those addresses, as far as some is mapped there; empty for what was acquired.
  std::vector<PhysicalExtent> behind(std::uintptr_t address, std::size_t bytes) const;
  /// The first misuse of the source, empty when there was none.
  std::string misuse() const;
  /// The first memory that went back while somebody still used it, empty when none did.
  std::string early_release() const;
  /// What was never given back, empty when nothing.
  std::string leftovers() const;

 private:
  bool fails_locked();
  bool order_fails_locked();
  void may_order(const char* refusal);
  void complain_locked(const std::string& what);
  void check_unused_locked(const void* address, std::size_t bytes) noexcept;

  mutable std::mutex mutex_;
  Fault fault_;
  std::int64_t calls_ = 0, refusals_ = 0;
  std::string misuse_, early_release_;
  StillUsed still_used_;
  std::function<void(const std::string&)> when_misused_;
  std::size_t reserved_bytes_ = 0;
  std::map<std::uintptr_t, std::size_t> acquired_, spaces_, mapped_;
  std::map<std::uint64_t, std::size_t> physicals_;
  // Physical memory as one line of bytes, in the order of its creation: where each piece begins in it, and what is
  // behind each mapped address.
  std::uint64_t created_bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> numbers_;
  std::map<std::uintptr_t, std::uint64_t> behind_;
};

}  // namespace tenon::conformance
