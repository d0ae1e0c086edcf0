// OpenFailure: the request that ran out of memory last, held back until it is known whether the program saw that. The
// host may give back the cache and ask again: a request that is then served never failed, one that fails again failed
// once.
#pragma once

#include <tenon/memory/history/failed_request.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace tenon {

class OpenFailure {
 public:
  bool is_open() const { return request_.has_value(); }
  /// The failure and how often the cache was emptied since, for one who looks before it is settled.
  const std::optional<FailedRequest>& request() const { return request_; }
  std::uint64_t id() const { return id_; }
  std::uint64_t trims() const { return trims_; }

  /// Settle before. `id`: the log's name for the request.
  void open(std::uint64_t id, const FailedRequest& request) {
    id_ = id;
    request_ = request;
  }
  void explain(std::uint64_t reserved_bytes, std::uint64_t device_free_bytes) {
    if (!request_) return;
    request_->reserved_bytes = reserved_bytes;
    request_->device_free_bytes = device_free_bytes;
  }
  /// The cache was emptied; false when no failure is open, and this is an event like any other.
  bool trimmed() {
    if (request_) ++trims_;
    return request_.has_value();
  }
  /// The program asks for this, or has been given it: after a trim, the open failure of the same request is none.
  void asked_again(std::uint64_t bytes, std::uint64_t stream) {
    if (request_ && trims_ != 0 && request_->bytes == bytes && request_->stream == stream) request_.reset();
  }
  /// Hands on what was held back, in its order, and forgets it.
  template <class Failed, class Trimmed>
  void settle(Failed failed, Trimmed trimmed) {
    const std::optional<FailedRequest> request = std::exchange(request_, std::nullopt);
    const std::uint64_t trims = std::exchange(trims_, 0);
    if (request) failed(id_, *request);
    for (std::uint64_t i = 0; i < trims; ++i) trimmed();
  }

 private:
  std::optional<FailedRequest> request_;
  std::uint64_t id_ = 0;
  std::uint64_t trims_ = 0;
};

}  // namespace tenon
