// RecordSlabs: the host's memory for records, in slabs that grow. Where there are many, they lie in huge pages: a free
// touches half a dozen records anywhere, and the processor knows the places of two thousand small pages at most.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <vector>

namespace tenon::tiled {

template <class Record>
class RecordSlabs {
 public:
  /// Some records more, side by side, as their constructor leaves them. Throws std::bad_alloc.
  std::span<Record> more() {
    if (used_ == end_) add();
    const std::size_t count = std::min<std::size_t>(end_ - used_, kAtOnce);
    Record* const first = used_;
    used_ += count;
    std::uninitialized_default_construct_n(first, count);
    return {first, count};
  }
  /// How many the next call gives.
  std::size_t next_count() const {
    return used_ != end_ ? std::min<std::size_t>(end_ - used_, kAtOnce) : slabs_.empty() ? kFirst : kAtOnce;
  }

 private:
  static_assert(std::is_trivially_destructible_v<Record>);
  static constexpr std::size_t kFirst = 64, kAtOnce = 1024, kSmallSlabs = 4;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  [[gnu::noinline, gnu::cold]] void add() {
    slabs_.reserve(slabs_.size() + 1);
    const bool is_huge = slabs_.size() >= kSmallSlabs;
    const std::size_t bytes = is_huge ? kHugePage : (slabs_.empty() ? kFirst : kAtOnce) * sizeof(Record);
    void* const memory = std::aligned_alloc(is_huge ? kHugePage : alignof(Record), bytes);
    if (!memory) throw std::bad_alloc();
    slabs_.emplace_back(memory);
    if (is_huge) ::madvise(memory, bytes, MADV_HUGEPAGE);  // where there are none, small ones do
    used_ = static_cast<Record*>(memory);
    end_ = used_ + bytes / sizeof(Record);
  }

  std::vector<std::unique_ptr<void, Free>> slabs_;
  Record* used_ = nullptr;
  Record* end_ = nullptr;
};

}  // namespace tenon::tiled
