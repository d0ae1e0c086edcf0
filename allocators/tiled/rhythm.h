// Rhythm: a step asks for what the step before it asked for. So the request that follows the same requests as before is
// served where it was served then: the layout of a step repeats, and what it needs is mapped already.
//
//   log     … 8 2 6 2 | 8 2 6 2 | 8 2          sizes of requests, and where each was served
//                       ^ expected               the one after the last that was found again
//
// Note [Apart]
// Where a program says what its blocks are for, requests of one purpose are compared among themselves (Rhythms): then
// what agrees is no accident, and is trusted earlier. Gradients live until the step after theirs wants their places.
// Were they followed among all else, that step would have to lie elsewhere, and so on.
#pragma once

#include <tenon/memory/purpose.h>
#include <tenon/memory/stream_ref.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tenon::tiled {

/// Place: where a request was served.
template <class Place>
class Rhythm {
 public:
  /// What is compared of requests: sizes on streams. Two may have the same one; a place that does not suit is not
  /// taken.
  using Key = std::uint32_t;
  static Key key_of(StreamRef stream, std::size_t bytes) {
    return static_cast<Key>(((bytes ^ std::rotl(stream.id, 48)) * kMixer) >> 32);
  }

  /// `is_apart`: see Note [Apart].
  explicit Rhythm(bool is_apart) : is_apart_(is_apart) {
    keys_.reserve(kLength);
    log_.reserve(kLength);
    distances_.reserve(kLength);
  }

  /// So many were noted since it was made, or has forgotten.
  std::uint64_t noted() const { return count_; }

  /// As if nothing had been asked for yet.
  void forget() noexcept {
    keys_.clear();
    log_.clear();
    distances_.clear();
    follows_ = began_ = kNowhere;
    count_ = mixed_recent_ = other_ = 0;
    agreed_ = missed_ = failed_ = balance_ = pause_ = others_ = 0;
    next_pause_ = kFirstPause;
    recent_ = {};
    last_of_key_ = {};
    found_at_ = {};
  }

  /// Whether the last three requests that were noted had that key, and the last one this place: another one like them
  /// teaches nothing.
  bool goes_on(Key key, Place place) const noexcept {
    const bool is_alike = recent_[0] == key && recent_[1] == key && recent_[2] == key;
    return is_alike && count_ >= 3 && log_[(count_ - 1) & kMask] == place;
  }

  /// Whether this request is to be served without it, since nothing is expected for long, and what is noted now would
  /// be overwritten by the time that it could be asked for. Asked once for each request.
  bool rests() noexcept {
    const bool is_long = pause_ > static_cast<int>(kLength);
    pause_ -= static_cast<int>(is_long);
    return is_long;
  }

  /// Where the request would be served as before; null where nothing like it has been seen, or too little of it agreed.
  const Place* expect(Key key) noexcept {
    if (pause_ != 0) {
      --pause_;
      return nullptr;
    }
    const std::uint64_t next = look_ahead(key);
    if (next != kNowhere) {
      follows_ = next;
      missed_ = 0;
    } else if (const std::uint64_t found = find_again(key); found != kNowhere) {
      follows_ = found;
      if (missed_ != 0) began_ = count_ - 3;
      agreed_ = is_apart_ ? agreed_ / 2 : 0;
      missed_ = 0;
    } else if (missed_ == 0 && agrees(began_, key)) {
      // What has agreed until here may begin anew: the step after the second one, say, where the first had a beginning
      // or an end of its own.
      follows_ = std::exchange(began_, count_);
    } else {
      // Something came between: what was expected may follow it.
      if (++missed_ > kPatience) follows_ = kNowhere;
      return nullptr;
    }
    ++agreed_;
    other_ = follows_;
    others_ = 0;
    return agreed_ > kConvincing ? &log_[follows_ & kMask] : nullptr;
  }

  /// Instead of the expected place, which is taken: where the last request of that key before it was served, and so on;
  /// null where there is none, or enough were asked for. Two buffers that are used in turn look so. Of equal requests
  /// in a row it matters little which is taken for which, as long as they lie where such requests lay before.
  const Place* another() noexcept {
    const std::uint64_t distance = distances_[other_ & kMask];
    const std::uint64_t next = other_ - distance;
    if (!agrees(next, keys_[other_ & kMask]) || (is_apart_ ? ++others_ > kMostOthers : follows_ - next > kNear))
      return nullptr;
    return &log_[(other_ = next) & kMask];
  }

  /// Whether one of the expected places was free. Where far more were not than were, or none again and again, sizes
  /// repeat but what is kept does not: then nothing is expected for a while, and for longer each time until places are
  /// free again. The first pauses are short: it may have been the one step that sets a program up. Of requests that are
  /// apart from others a step or two may fail: the next one finds its own places.
  void tried(bool was_free) noexcept {
    balance_ = std::min(balance_ + (was_free ? 1 : -1), kTrusted);
    failed_ = was_free || is_apart_ ? 0 : failed_ + 1;
    if (balance_ == kTrusted) next_pause_ = kFirstPause;
    if (failed_ < kMostInARow && balance_ > -kMostFailed) return;
    balance_ = failed_ = 0;
    pause_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, kLastPause);
  }

  [[gnu::always_inline]] void note(Key key, Place place) noexcept {
    if (pause_ > static_cast<int>(kLength)) return;  // overwritten by the time that it could be asked for
    const auto distance = static_cast<std::uint16_t>(count_ - reconstructed(last_of_key_[key >> 20]));
    last_of_key_[key >> 20] = static_cast<std::uint16_t>(count_ & kMask);
    if (log_.size() < kLength) {
      keys_.push_back(key);
      log_.push_back(place);
      distances_.push_back(distance);
    } else {
      keys_[count_ & kMask] = key;
      log_[count_ & kMask] = place;
      distances_[count_ & kMask] = distance;
      if (follows_ != kNowhere && follows_ + kLength <= count_ + 1) follows_ = kNowhere;
    }
    const std::uint64_t mixed = mix(key);
    found_at_[slot(mixed)] = seal(mixed) | static_cast<std::uint32_t>(count_ & kMask);
    recent_ = {recent_[1], recent_[2], key};
    mixed_recent_ = 0;
    for (const Key earlier : recent_) mixed_recent_ = (mixed_recent_ ^ earlier) * kMixer;
    ++count_;
  }

 private:
  static constexpr std::uint64_t kLength = std::uint64_t{1} << 15, kMask = kLength - 1;
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  static constexpr std::uint64_t kMixer = 0x9e3779b97f4a7c15;
  /// So many requests in a row have to agree with an earlier time before it is followed.
  static constexpr int kConvincing = 8;
  static constexpr int kPatience = 8, kMostFailed = 256, kMostInARow = 32, kTrusted = 8, kMostOthers = 4;
  static constexpr std::uint64_t kNear = 4;
  static constexpr int kFirstPause = 32, kLastPause = 1 << 18;
  static constexpr std::uint64_t kAhead = 4;

  bool is_kept(std::uint64_t index) const { return index < count_ && index + kLength > count_; }
  bool agrees(std::uint64_t index, Key key) const { return is_kept(index) && keys_[index & kMask] == key; }
  /// One of the next ones: some may be left out this time.
  std::uint64_t look_ahead(Key key) const {
    if (follows_ == kNowhere) return kNowhere;
    for (std::uint64_t i = 1; i <= kAhead; ++i)
      if (agrees(follows_ + i, key)) return follows_ + i;
    return kNowhere;
  }
  /// The last index that had this place in the rings.
  std::uint64_t reconstructed(std::uint32_t place) const { return count_ - 1 - ((count_ - 1 - place) & kMask); }
  /// Of the last three requests and this one.
  std::uint64_t mix(Key key) const { return (mixed_recent_ ^ key) * kMixer; }
  static std::size_t slot(std::uint64_t mixed) { return mixed >> 52; }
  /// Tells most others that have this slot from it, without a look at their keys. Never 0.
  static std::uint32_t seal(std::uint64_t mixed) {
    static_assert(kLength == 1 << 15);
    return (static_cast<std::uint32_t>(mixed >> 20) | 1U << 15) & ~static_cast<std::uint32_t>(kMask);
  }
  /// The last time that these four requests came.
  std::uint64_t find_again(Key key) const {
    const std::uint64_t mixed = mix(key);
    const std::uint32_t found = found_at_[slot(mixed)];
    if ((found & ~static_cast<std::uint32_t>(kMask)) != seal(mixed)) [[likely]]
      return kNowhere;
    const std::uint64_t index = reconstructed(found);
    if (index < 3 || !is_kept(index - 3) || keys_[index & kMask] != key) return kNowhere;
    for (std::uint64_t i = 0; i < 3; ++i)
      if (keys_[(index - 3 + i) & kMask] != recent_[i]) return kNowhere;
    return index;
  }

  const bool is_apart_;
  std::vector<Key> keys_;                 ///< a ring, and
  std::vector<Place> log_;                ///< a place for each, and
  std::vector<std::uint16_t> distances_;  ///< how much earlier that key came before, if it was that key
  std::uint64_t count_ = 0;               ///< noted in all
  std::uint64_t follows_ = kNowhere;
  std::uint64_t began_ = kNowhere;  ///< the first of those that have agreed without one between them that did not
  int agreed_ = 0, missed_ = 0, failed_ = 0, balance_ = 0, pause_ = 0, next_pause_ = kFirstPause;
  std::array<Key, 3> recent_{};
  std::uint64_t mixed_recent_ = 0;
  std::uint64_t other_ = 0;  ///< whose place was given last, after others_ of them
  int others_ = 0;
  std::array<std::uint16_t, 4096> last_of_key_{};  ///< where in the rings
  std::array<std::uint32_t, 4096> found_at_{};     ///< by the last four: a seal, and where in the rings the last is
};

/// See Note [Apart].
template <class Rhythm>
class Rhythms {
 public:
  /// Null for what is kept as long as the program, and so does not come again.
  Rhythm* of(Purpose purpose) {
    switch (purpose) {
      case Purpose::kParameter:
      case Purpose::kOptimizerState:
        return nullptr;
      case Purpose::kGradient:
        return &gradients_;
      case Purpose::kData:
        return &data_;
      case Purpose::kActivation:
      case Purpose::kWorkspace:
      case Purpose::kCast:
        return &steps_;
      case Purpose::kKvCache:
      case Purpose::kOther:
        break;
    }
    return &all_;
  }

  /// There was no memory for a request. Where that comes twice within a while, the places that are followed leave no
  /// room for what is asked: a program that tries once more is served as if for the first time.
  void ran_out() noexcept {
    std::uint64_t noted = 0;
    for (const Rhythm* const one : all()) noted += one->noted();
    if (std::exchange(has_run_out_, true) && noted - noted_by_then_ < kWhile) {
      for (Rhythm* const one : all()) one->forget();
      has_run_out_ = false;
    }
    noted_by_then_ = noted;
  }

 private:
  static constexpr std::uint64_t kWhile = 4096;
  std::array<Rhythm*, 4> all() { return {&all_, &steps_, &gradients_, &data_}; }

  std::uint64_t noted_by_then_ = 0;
  bool has_run_out_ = false;
  Rhythm all_{false};  ///< where nobody says what it is for
  Rhythm steps_{true};
  Rhythm gradients_{true};
  Rhythm data_{true};  ///< is read ahead, at no fixed moment of a step
};

}  // namespace tenon::tiled
