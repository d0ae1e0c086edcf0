// Requests with their lives, and the plan of them.
#include "recorder.h"

#include <tenon/core/files/atomic_file.h>

#include <algorithm>
#include <utility>

namespace tenon::planned {

namespace {

/// What is kept of a run at most: 40 bytes each. Later requests are not planned.
constexpr std::size_t kMostRequests = std::size_t{1} << 24;

}  // namespace

Recorder::Recorder(std::string file) : file_(std::move(file)) {
  if (is_on()) const AtomicFile tried(file_);
}

std::uint64_t Recorder::requested(const Request& request) {
  const std::uint64_t number = requests_.size();
  if (!is_on() || number >= kMostRequests) return number;
  const auto stream = streams_.try_emplace(request.stream.id, static_cast<std::uint32_t>(streams_.size())).first;
  requests_.push_back(
      {.bytes = request.bytes, .stream = stream->second, .purpose = request.purpose, .alignment = request.alignment});
  return number;
}

void Recorder::freed(std::uint64_t number) noexcept {
  if (is_on() && number < requests_.size()) requests_[number].until = requests_.size();
}

void Recorder::write(double seconds) const {
  std::vector<packing::RecordedRequest> recording = requests_;
  for (packing::RecordedRequest& request : recording)
    if (request.until == 0) request.until = recording.size();
  // A run that names no purposes is told from others by sizes alone, as a history without them.
  const bool has_purposes = std::ranges::any_of(
      recording, [](const packing::RecordedRequest& request) { return request.purpose != Purpose::kOther; });
  if (!has_purposes)
    for (packing::RecordedRequest& request : recording) request.purpose.reset();
  const packing::PackResult result = packing::pack(packing::buffers_of(recording), {.time_limit_seconds = seconds});
  write_atomically(file_, text_of(plan_of("a recorded run", recording, result)));
}

}  // namespace tenon::planned
