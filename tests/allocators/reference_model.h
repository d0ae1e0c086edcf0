// PyTorch's allocator as its description words it, in the plainest containers: one map of blocks by address, and every
// search goes through all of them. What `caching` and `expandable` decide is held against it, step by step.
#pragma once

#include <caching/settings.h>
#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace tenon::test {

class ReferenceModel {
 public:
  using Settings = caching::Settings;
  struct Place {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    bool operator==(const Place&) const = default;
  };
  struct Shown {
    std::uintptr_t address;
    std::size_t bytes;
    BlockState state;
    bool operator==(const Shown&) const = default;
  };

  ReferenceModel(MemorySource& source, const Settings& settings);

  std::optional<Place> allocate(std::size_t requested, std::uint64_t stream);
  void use(std::uintptr_t address, std::uint64_t stream);
  void free(std::uintptr_t address);
  void empty_cache();
  void begin_pool(std::uint64_t pool, PoolOptions options = {});
  void end_pool() { scopes_.pop_back(); }
  void release_pool(std::uint64_t pool);
  void set_expandable(bool expandable) { settings_.expandable = expandable; }
  void set_limit(std::size_t bytes) { limit_ = bytes; }
  void reset(bool peaks, bool accumulated);

  const PolicyStats& stats() const { return stats_; }
  std::vector<Shown> layout() const;

 private:
  struct Segment {
    std::uint64_t pool = 0, stream = 0, registration = 0;
    std::uintptr_t address = 0;
    std::size_t bytes = 0, page = 0;
    bool large = false, expandable = false;
    std::map<std::uintptr_t, std::uint64_t> pages;
  };
  struct ModelBlock {
    int segment = 0;
    std::size_t bytes = 0, requested = 0;
    BlockState state = BlockState::kFree;
    std::uint64_t born = 0;
    std::set<std::uint64_t> uses;
    int marks = 0;
  };
  using At = std::map<std::uintptr_t, ModelBlock>::iterator;
  struct Mark {
    Ticket ticket;
    std::uintptr_t address;
  };
  /// What a search is for.
  struct Wanted {
    std::uint64_t pool, stream;
    bool large;
    std::size_t bytes;
    bool expandable;
  };

  std::optional<Place> allocate_or_throw(std::size_t requested, std::uint64_t stream);
  std::size_t rounded(std::size_t requested) const;
  std::size_t segment_bytes(std::size_t bytes) const;
  Segment& segment_of(At block) { return segments_.at(block->second.segment); }
  bool has_left(At block) const;
  bool has_right(At block) const;
  bool is_whole(At block) const { return !has_left(block) && !has_right(block); }
  std::vector<At> free_blocks(std::uint64_t pool, bool large);

  std::optional<At> find(const Wanted& wanted);
  std::optional<At> from_device(const Wanted& wanted);
  std::optional<At> from_pools_for_oom(Wanted wanted);
  Place hand_out(At block, const Wanted& wanted, std::size_t requested);
  void finish_free(At block);
  void into_free_set(At block);
  At cut(At block, std::size_t bytes);
  void absorb_right(At block);

  void process_events();
  void synchronize(std::uint64_t only_pool);
  void collect_garbage();
  bool release_available(const Wanted& wanted);
  void release_all(std::uint64_t only_pool);
  void release_free(std::uint64_t pool, bool large);
  void release(At block);

  std::optional<At> expand(const Wanted& wanted);
  std::optional<At> find_space(const Wanted& wanted);
  std::optional<At> map(At block, std::size_t bytes);
  void unmap(At block);

  MemorySource& source_;
  Settings settings_;
  const bool compat_1_13_;
  std::size_t limit_ = caching::kUnlimited;
  std::size_t device_share_ = caching::kUnlimited;  // beyond it throw_on_cudamalloc_oom throws
  std::size_t address_space_ = 0;
  std::map<std::uintptr_t, ModelBlock> blocks_;
  std::map<int, Segment> segments_;
  std::map<std::uint64_t, std::deque<Mark>> marks_;
  std::vector<std::uint64_t> scopes_;
  std::map<std::uint64_t, PoolOptions> pools_;
  std::set<std::uint64_t> released_;
  int next_segment_ = 0;
  std::uint64_t next_registration_ = 0;
  std::uint64_t lookups_ = 0;  // in the default large pool
  std::size_t total_ = 0;
  PolicyStats stats_;
};

}  // namespace tenon::test
