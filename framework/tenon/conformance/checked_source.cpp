// A ledger of every range, and refusals on demand.
#include <tenon/conformance/checked_source.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/snapshot.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace tenon::conformance {

namespace {

/// Whether [address, address + bytes) lies in the union of the ranges, which may be several adjacent ones.
bool inside(const std::map<std::uintptr_t, std::size_t>& ranges, std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t end = address + bytes;
  auto it = ranges.upper_bound(address);
  if (it == ranges.begin()) return false;
  for (--it; address < end; ++it) {
    if (it == ranges.end() || it->first > address || it->first + it->second <= address) return false;
    address = it->first + it->second;
  }
  return true;
}

bool touches(const std::map<std::uintptr_t, std::size_t>& ranges, std::uintptr_t address, std::size_t bytes) {
  const auto it = ranges.lower_bound(address);
  if (it != ranges.end() && it->first < address + bytes) return true;
  return it != ranges.begin() && std::prev(it)->first + std::prev(it)->second > address;
}

}  // namespace

CheckedSource::CheckedSource(MemorySource& upstream, Fault fault) : ForwardingSource(upstream), fault_(fault) {}

bool CheckedSource::fails_locked() {
  const std::int64_t call = calls_++;
  return fault_.index >= 0 && (call == fault_.index || (fault_.from_then_on && call > fault_.index));
}

bool CheckedSource::order_fails_locked() { return fault_.order_calls_too && fails_locked(); }

/// Throws for a lost device. Nothing is held while a stream is asked or waited for.
void CheckedSource::may_order(const char* refusal) {
  const std::lock_guard lock(mutex_);
  if (order_fails_locked()) throw Error(refusal);
}

void CheckedSource::complain_locked(const std::string& what) {
  if (misuse_.empty()) misuse_ = what;
  if (when_misused_) when_misused_(what);
}

void CheckedSource::check_unused_locked(const void* address, std::size_t bytes) noexcept {
  if (!still_used_ || fault_.order_calls_too) return;  // a lost device completes nothing
  if (early_release_.empty()) early_release_ = still_used_(Address(address), bytes);
}

void* CheckedSource::acquire(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (fails_locked()) return nullptr;
  if (bytes == 0) complain_locked("acquire(0): the source was asked for nothing");
  void* address = upstream_.acquire(bytes);
  if (!address) {
    ++refusals_;
    return nullptr;
  }
  acquired_[Address(address)] = bytes;
  reserved_bytes_ += bytes;
  return address;
}

void CheckedSource::release(void* address, std::size_t bytes) noexcept {
  const std::uint64_t start = Address(address);
  std::lock_guard lock(mutex_);
  const auto it = acquired_.find(start);
  if (it == acquired_.end())
    return complain_locked(fmt::format("release({:#x}): never acquired, or released before", start));
  if (it->second != bytes)
    complain_locked(fmt::format("release({:#x}, {}): it was acquired with {} bytes", start, bytes, it->second));
  check_unused_locked(address, it->second);
  reserved_bytes_ -= it->second;
  const std::size_t true_bytes = it->second;
  acquired_.erase(it);
  upstream_.release(address, true_bytes);
}

void* CheckedSource::reserve(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (fails_locked()) return nullptr;
  void* address = upstream_.reserve(bytes);
  if (address) spaces_[Address(address)] = bytes;
  return address;
}

void CheckedSource::unreserve(void* address, std::size_t bytes) noexcept {
  const std::uint64_t start = Address(address);
  std::lock_guard lock(mutex_);
  const auto it = spaces_.find(start);
  if (it == spaces_.end() || it->second != bytes)
    return complain_locked(fmt::format("unreserve({:#x}, {}): no such reservation", start, bytes));
  if (touches(mapped_, start, bytes))
    complain_locked(fmt::format("unreserve({:#x}): something is still mapped there", start));
  spaces_.erase(it);
  upstream_.unreserve(address, bytes);
}

Physical CheckedSource::create(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (fails_locked()) return {};
  const Physical physical = upstream_.create(bytes);
  if (!physical) {
    ++refusals_;
    return {};
  }
  physicals_[physical.value] = bytes;
  numbers_[physical.value] = created_bytes_;
  created_bytes_ += bytes;
  reserved_bytes_ += bytes;
  return physical;
}

void CheckedSource::destroy(Physical physical, std::size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  const auto it = physicals_.find(physical.value);
  if (it == physicals_.end() || it->second != bytes)
    return complain_locked(fmt::format("destroy({}, {}): no such physical memory", physical.value, bytes));
  reserved_bytes_ -= bytes;
  physicals_.erase(it);
  numbers_.erase(physical.value);
  upstream_.destroy(physical, bytes);
}

void CheckedSource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  const std::uint64_t start = Address(address);
  std::lock_guard lock(mutex_);
  if (fails_locked()) throw Error("injected: the device refused to map");
  if (!inside(spaces_, start, bytes))
    complain_locked(fmt::format("map({:#x}, {}): outside of every reservation", start, bytes));
  if (touches(mapped_, start, bytes))
    complain_locked(fmt::format("map({:#x}, {}): something is mapped there already", start, bytes));
  const auto it = physicals_.find(physical.value);
  if (it == physicals_.end() || offset + bytes > it->second)
    complain_locked(fmt::format("map({:#x}, {}): no such physical memory", start, bytes));
  upstream_.map(address, bytes, physical, offset);
  mapped_[start] = bytes;
  if (it != physicals_.end()) behind_[start] = numbers_.at(physical.value) + offset;
}

void CheckedSource::unmap(void* address, std::size_t bytes) noexcept {
  std::lock_guard lock(mutex_);
  check_unused_locked(address, bytes);
  const std::uint64_t start = Address(address);
  const std::uint64_t end = start + bytes;
  std::uint64_t next = start;
  while (next < end) {
    const auto it = mapped_.find(next);
    if (it == mapped_.end() || it->first + it->second > end)
      return complain_locked(fmt::format("unmap({:#x}, {}): not what was mapped there", start, bytes));
    next += it->second;
    behind_.erase(it->first);
    mapped_.erase(it);
  }
  upstream_.unmap(address, bytes);
}

Ticket CheckedSource::mark(StreamRef stream) {
  may_order("injected: the device refused to mark a stream");
  return upstream_.mark(stream);
}

bool CheckedSource::reached(Ticket ticket) {
  may_order("injected: the device does not say whether a mark was reached");
  return upstream_.reached(ticket);
}

void CheckedSource::wait(Ticket ticket) {
  may_order("injected: the device failed while it was waited for");
  upstream_.wait(ticket);
}

void CheckedSource::synchronize() {
  may_order("injected: the device failed while it was waited for");
  upstream_.synchronize();
}

std::int64_t CheckedSource::fallible_calls() const {
  std::lock_guard lock(mutex_);
  return calls_;
}

std::int64_t CheckedSource::refusals() const {
  std::lock_guard lock(mutex_);
  return refusals_;
}

void CheckedSource::stop_faults() {
  std::lock_guard lock(mutex_);
  fault_ = {};
}

std::size_t CheckedSource::reserved_bytes() const {
  std::lock_guard lock(mutex_);
  return reserved_bytes_;
}

bool CheckedSource::covers(std::uintptr_t address, std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return inside(acquired_, address, bytes) || inside(mapped_, address, bytes);
}

std::vector<PhysicalExtent> CheckedSource::behind(std::uintptr_t address, std::size_t bytes) const {
  std::vector<PhysicalExtent> extents;
  const std::uint64_t end = address + bytes;
  const std::lock_guard lock(mutex_);
  auto it = mapped_.upper_bound(address);
  if (it != mapped_.begin()) --it;
  for (; it != mapped_.end() && it->first < end; ++it) {
    const auto physical = behind_.find(it->first);
    const std::uint64_t from = std::max<std::uint64_t>(address, it->first);
    const std::uint64_t to = std::min<std::uint64_t>(end, it->first + it->second);
    if (from >= to || physical == behind_.end()) continue;
    const std::uint64_t begin = physical->second + (from - it->first);
    if (!extents.empty() && extents.back().end == begin) {
      extents.back().end += to - from;
    } else {
      extents.push_back({begin, begin + (to - from)});
    }
  }
  return extents;
}

std::string CheckedSource::misuse() const {
  std::lock_guard lock(mutex_);
  return misuse_;
}

std::string CheckedSource::early_release() const {
  std::lock_guard lock(mutex_);
  return early_release_;
}

std::string CheckedSource::leftovers() const {
  std::lock_guard lock(mutex_);
  if (acquired_.empty() && physicals_.empty() && mapped_.empty() && spaces_.empty()) return {};
  std::string what;
  for (const auto& [count, one, many] :
       {std::tuple(acquired_.size(), "segment", "segments"),
        std::tuple(physicals_.size(), "piece of physical memory", "pieces of physical memory"),
        std::tuple(mapped_.size(), "mapping", "mappings"),
        std::tuple(spaces_.size(), "range of addresses", "ranges of addresses")})
    if (count != 0) what += fmt::format("{}{} {}", what.empty() ? "" : ", ", count, count == 1 ? one : many);
  return fmt::format("{} bytes were not given back to the device: {}", reserved_bytes_, what);
}

}  // namespace tenon::conformance
