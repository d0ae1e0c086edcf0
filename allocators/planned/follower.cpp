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
  hash ^= static_cast<std::uint64_t>(key.purpose) * 0xff51afd7ed558ccdU;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

Follower::Follower(packing::Plan plan, std::size_t window) : plan_(std::move(plan)), window_(window) {
  has_purposes_ = !plan_.blocks.empty() &&
                  std::ranges::all_of(plan_.blocks, [](const auto& block) { return block.purpose.has_value(); });
  sort_by_stream();
}

void Follower::sort_by_stream() {
  streams_.clear();
  std::map<std::uint32_t, std::vector<std::uint32_t>> blocks;
  for (std::uint32_t i = 0; i < plan_.blocks.size(); ++i) blocks[plan_.blocks[i].stream].push_back(i);
  for (auto& [number, of_stream] : blocks) {
    Stream& stream = streams_.emplace_back(Stream{.blocks = std::move(of_stream)});
    stream.served.resize(stream.blocks.size());
    for (std::uint32_t i = 0; i < stream.blocks.size(); ++i) stream.of_key[key_of_block(stream.blocks[i])].push_back(i);
  }
}

Follower::Key Follower::key_of(const Request& request) const {
  return {request.bytes, has_purposes_ ? request.purpose : Purpose::kOther};
}

Follower::Key Follower::key_of_block(std::size_t number) const {
  const packing::PlannedBlock& block = plan_.blocks[number];
  return {block.bytes, has_purposes_ ? *block.purpose : Purpose::kOther};
}

/// Threads may begin in another order: a stream is the one in the plan that begins with the same request, else the
/// first one that is left.
Follower::Stream* Follower::stream_of(const Request& request, const Key& key) {
  const auto [entry, is_new] = by_id_.try_emplace(request.stream.id, nullptr);
  if (!is_new) return entry->second;
  const auto is_left = [](const Stream& stream) { return !stream.is_taken; };
  auto found = std::ranges::find_if(
      streams_, [&](const Stream& stream) { return is_left(stream) && key_of_block(stream.blocks.front()) == key; });
  if (found == streams_.end()) found = std::ranges::find_if(streams_, is_left);
  if (found == streams_.end()) return nullptr;
  found->is_taken = true;
  return entry->second = &*found;
}

std::size_t Follower::place() const {
  std::size_t first = plan_.blocks.size();
  for (const Stream& stream : streams_)
    if (stream.next < stream.blocks.size()) first = std::min<std::size_t>(first, stream.blocks[stream.next]);
  return first;
}

/// The nearest one that is not served yet; of two that are as near, the earlier.
std::optional<std::size_t> Follower::near_by(const Stream& stream, const Key& key) const {
  const auto indices = stream.of_key.find(key);
  if (indices == stream.of_key.end()) return std::nullopt;
  const std::vector<std::uint32_t>& all = indices->second;
  std::optional<std::size_t> nearest;
  const std::size_t next = stream.next;
  const auto distance = [&](std::size_t index) { return index > next ? index - next : next - index; };
  const std::size_t first = next - std::min(next, window_);
  for (auto at = std::ranges::lower_bound(all, first); at != all.end() && *at <= next + window_; ++at)
    if (stream.served[*at] != stream.round && (!nearest || distance(*at) < distance(*nearest))) nearest = *at;
  return nearest;
}

/// Where the plan has the last requests in a row; of several places the next one ahead, else the last one.
std::optional<std::size_t> Follower::by_the_last_requests(const Stream& stream) const {
  const std::vector<Key>& last = stream.last;
  if (last.size() < kLastRequests) return std::nullopt;
  const auto indices = stream.of_key.find(last.back());
  if (indices == stream.of_key.end()) return std::nullopt;
  std::optional<std::size_t> found;
  for (const std::uint32_t index : indices->second) {
    if (index + 1 < kLastRequests) continue;
    bool is_here = true;
    for (std::size_t i = 0; i < kLastRequests && is_here; ++i)
      is_here = key_of_block(stream.blocks[index + 1 - kLastRequests + i]) == last[last.size() - kLastRequests + i];
    if (!is_here) continue;
    found = index;
    if (index >= stream.next) break;
  }
  return found;
}

std::optional<std::size_t> Follower::find(const Stream& stream, const Key& key) const {
  const std::size_t next = stream.next;
  if (next < stream.blocks.size() && stream.served[next] != stream.round && key_of_block(stream.blocks[next]) == key)
    return next;
  const std::optional<std::size_t> near = near_by(stream, key);
  return near ? near : by_the_last_requests(stream);
}

void Follower::serve(Stream& stream, std::size_t index) {
  if (index + window_ < stream.next) ++stream.round;  // back to an earlier step: all from here on comes again
  stream.served[index] = stream.round;
  stream.next = index + 1;
  ++found_;
}

std::optional<std::size_t> Follower::follow(const Request& request) {
  if (requests_++ == 0 && has_purposes_ && request.purpose == Purpose::kOther &&
      plan_.blocks.front().purpose != Purpose::kOther) {
    has_purposes_ = false;  // a replay, or a program that names none
    sort_by_stream();
  }
  const Key key = key_of(request);
  Stream* const stream = stream_of(request, key);
  if (stream == nullptr) return std::nullopt;
  std::vector<Key>& last = stream->last;
  if (last.size() >= 2 * kLastRequests) last.erase(last.begin(), last.begin() + kLastRequests);
  last.push_back(key);
  const std::optional<std::size_t> index = find(*stream, key);
  if (!index) return std::nullopt;
  serve(*stream, *index);
  return stream->blocks[*index];
}

}  // namespace tenon::planned
