// Keys, the window, and finding the place again.
#include "follower.h"

#include <algorithm>
#include <utility>

namespace tenon::planned {

namespace {

/// So many requests that together tell one place of a plan from another.
constexpr std::size_t kLastRequests = 6;

}  // namespace

std::size_t Follower::KeyHash::operator()(const Key& key) const {
  std::uint64_t hash = key.bytes * 0x9e3779b97f4a7c15U;
  hash ^= (std::uint64_t{key.stream} << 8 | static_cast<std::uint64_t>(key.purpose)) * 0xff51afd7ed558ccdU;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

Follower::Follower(packing::Plan plan, std::size_t window)
    : plan_(std::move(plan)), window_(window), served_(plan_.blocks.size()) {
  has_purposes_ = !plan_.blocks.empty() &&
                  std::ranges::all_of(plan_.blocks, [](const auto& block) { return block.purpose.has_value(); });
  number_blocks();
}

void Follower::number_blocks() {
  numbers_.clear();
  for (std::uint32_t i = 0; i < plan_.blocks.size(); ++i) {
    const packing::PlannedBlock& block = plan_.blocks[i];
    numbers_[{block.bytes, block.stream, has_purposes_ ? *block.purpose : Purpose::kOther}].push_back(i);
  }
}

Follower::Key Follower::key_of(const Request& request) {
  const auto stream = streams_.try_emplace(request.stream.id, static_cast<std::uint32_t>(streams_.size())).first;
  return {request.bytes, stream->second, has_purposes_ ? request.purpose : Purpose::kOther};
}

bool Follower::matches(std::size_t number, const Key& key) const {
  const packing::PlannedBlock& block = plan_.blocks[number];
  return block.bytes == key.bytes && block.stream == key.stream && (!has_purposes_ || *block.purpose == key.purpose);
}

/// The nearest one that is not served yet.
std::optional<std::size_t> Follower::near_by(const Key& key) const {
  const auto numbers = numbers_.find(key);
  if (numbers == numbers_.end()) return std::nullopt;
  const std::vector<std::uint32_t>& all = numbers->second;
  std::optional<std::size_t> nearest;
  const auto distance = [&](std::size_t number) { return number > next_ ? number - next_ : next_ - number; };
  const std::size_t first = next_ - std::min(next_, window_);
  for (auto at = std::ranges::lower_bound(all, first); at != all.end() && *at <= next_ + window_; ++at)
    if (!is_served(*at) && (!nearest || distance(*at) < distance(*nearest))) nearest = *at;
  return nearest;
}

/// Where the plan has the last requests in a row; of several places the next one ahead, else the last one.
std::optional<std::size_t> Follower::by_the_last_requests() const {
  if (last_.size() < kLastRequests) return std::nullopt;
  const auto numbers = numbers_.find(last_.back());
  if (numbers == numbers_.end()) return std::nullopt;
  std::optional<std::size_t> found;
  for (const std::uint32_t number : numbers->second) {
    if (number + 1 < kLastRequests) continue;
    bool is_here = true;
    for (std::size_t i = 0; i < kLastRequests && is_here; ++i)
      is_here = matches(number + 1 - kLastRequests + i, last_[last_.size() - kLastRequests + i]);
    if (!is_here) continue;
    found = number;
    if (number >= next_) break;
  }
  return found;
}

void Follower::serve(std::size_t number) {
  if (number + window_ < next_) ++round_;  // back to an earlier step: all from here on comes again
  served_[number] = round_;
  next_ = number + 1;
  ++found_;
}

std::optional<std::size_t> Follower::follow(const Request& request) {
  if (requests_++ == 0 && has_purposes_ && request.purpose == Purpose::kOther &&
      plan_.blocks.front().purpose != Purpose::kOther) {
    has_purposes_ = false;  // a replay, or a program that names none
    number_blocks();
  }
  const Key key = key_of(request);
  if (last_.size() >= 2 * kLastRequests) last_.erase(last_.begin(), last_.begin() + kLastRequests);
  last_.push_back(key);
  std::optional<std::size_t> number;
  if (next_ < plan_.blocks.size() && !is_served(next_) && matches(next_, key)) {
    number = next_;
  } else {
    number = near_by(key);
    if (!number) number = by_the_last_requests();
  }
  if (number) serve(*number);
  return number;
}

}  // namespace tenon::planned
