// Rhythm: a step asks for what the step before it asked for. So the request that follows the same requests as before is
// served where it was served then: the layout of a step repeats, and what it needs is mapped already.
//
//   log     … 8 2 6 2 | 8 2 6 2 | 8 2          sizes of requests, and where each was served
//                       ^ expected               the one after the last that was found again
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace tenon::tiled {

/// Placement: where a request was served, with its `bytes` and its `owner`, whose memory it was.
/// `convincing`: so many requests in a row have to agree with an earlier time before it is followed.
template <class Placement, int convincing = 8>
class Rhythm {
  using Owner = std::remove_pointer_t<decltype(Placement::owner)>;

 public:
  Rhythm() { log_.reserve(kLength); }

  /// Where the request would be served as before; null where nothing like it has been seen, or too little of it agreed.
  const Placement* expect(const Owner& owner, std::size_t bytes) noexcept {
    const std::uint64_t next = look_ahead(owner, bytes);
    if (next != kNowhere) {
      follows_ = next;
      missed_ = 0;
    } else if (const std::uint64_t found = find_again(owner, bytes); found != kNowhere) {
      follows_ = found;
      agreed_ = missed_ = 0;
    } else {
      // Something came between: what was expected may follow it.
      if (++missed_ > kPatience) follows_ = kNowhere;
      return nullptr;
    }
    ++agreed_;
    return agreed_ > kConvincing ? &log_[follows_ & kMask] : nullptr;
  }

  /// Instead of the expected place, which is taken: where a request of its size was served shortly before it; two
  /// buffers that are used in turn look so. `back` counts from 1 to kBack; null where that one was of another size.
  static constexpr std::uint64_t kBack = 4;
  const Placement* earlier(std::uint64_t back, const Owner& owner, std::size_t bytes) const noexcept {
    return follows_ >= back && agrees(follows_ - back, owner, bytes) ? &log_[(follows_ - back) & kMask] : nullptr;
  }

  void note(const Placement& placement) noexcept {
    if (log_.size() < kLength) {
      log_.push_back(placement);
    } else {
      log_[count_ & kMask] = placement;
      if (follows_ != kNowhere && follows_ + kLength <= count_ + 1) follows_ = kNowhere;
    }
    recent_ = {recent_[1], recent_[2], recent_[3], placement.bytes};
    places_[slot(recent_)] = count_ + 1;
    ++count_;
  }

 private:
  static constexpr std::uint64_t kLength = std::uint64_t{1} << 15, kMask = kLength - 1;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  static constexpr int kConvincing = convincing, kPatience = 8;
  static constexpr std::uint64_t kAhead = 4;
  using Sizes = std::array<std::size_t, 4>;

  bool is_kept(std::uint64_t index) const { return index < count_ && index + kLength > count_; }
  bool agrees(std::uint64_t index, const Owner& owner, std::size_t bytes) const {
    if (!is_kept(index)) return false;
    const Placement& placement = log_[index & kMask];
    return placement.bytes == bytes && placement.owner == &owner;
  }
  /// One of the next ones: some may be left out this time.
  std::uint64_t look_ahead(const Owner& owner, std::size_t bytes) const {
    if (follows_ == kNowhere) return kNowhere;
    for (std::uint64_t i = 1; i <= kAhead; ++i)
      if (agrees(follows_ + i, owner, bytes)) return follows_ + i;
    return kNowhere;
  }
  static std::size_t slot(const Sizes& sizes) {
    std::uint64_t mixed = 0;
    for (const std::size_t size : sizes) mixed = (mixed ^ size) * 0x9e3779b97f4a7c15;
    return mixed >> 52;
  }
  /// The last time that four requests of these sizes came.
  std::uint64_t find_again(const Owner& owner, std::size_t bytes) const {
    const Sizes sizes{recent_[1], recent_[2], recent_[3], bytes};
    const std::uint64_t index = places_[slot(sizes)] - 1;
    if (index == kNowhere || index < 3 || !is_kept(index - 3) || !agrees(index, owner, bytes)) return kNowhere;
    for (std::uint64_t i = 0; i < 3; ++i)
      if (log_[(index - 3 + i) & kMask].bytes != sizes[i]) return kNowhere;
    return index;
  }

  std::vector<Placement> log_;  ///< a ring
  std::uint64_t count_ = 0;     ///< noted in all
  std::uint64_t follows_ = kNowhere;
  int agreed_ = 0, missed_ = 0;
  Sizes recent_{};
  std::array<std::uint64_t, 4096> places_{};  ///< by the sizes of the last four: the index of the last plus 1
};

}  // namespace tenon::tiled
