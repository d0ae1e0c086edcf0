// RequestFilter: which requests a layer is about, by size, purpose and stream. Shared by `inject` and `route`.
#pragma once

#include <tenon/core/options.h>
#include <tenon/memory/allocator.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace tenon {

class RequestFilter {
 public:
  /// min_size, max_size, purpose, stream.
  static OptionSchema options();
  explicit RequestFilter(const Options& options);

  bool accepts(const Request& request) const { return accepts(request.bytes, request.purpose, request.stream); }
  bool accepts(std::size_t bytes, Purpose purpose, StreamRef stream) const {
    return bytes >= min_bytes_ && bytes <= max_bytes_ && (!purpose_ || *purpose_ == purpose) &&
           (!stream_ || *stream_ == stream.id);
  }

 private:
  std::size_t min_bytes_;
  std::size_t max_bytes_;
  std::optional<Purpose> purpose_;
  std::optional<std::uint64_t> stream_;
};

}  // namespace tenon
