// Sequencers: the order in which results are handed on, whatever the order in which they come back.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tenon::data::detail::sequencers {

template <class Result>
class Sequencer {
 public:
  /// The next result that is there; none when there are no more.
  using ResultProducer = std::function<std::optional<Result>()>;
  virtual ~Sequencer() = default;
  virtual std::optional<Result> next(ResultProducer next_result) = 0;
};

/// As they come.
template <class Result>
class NoSequencer final : public Sequencer<Result> {
 public:
  using typename Sequencer<Result>::ResultProducer;
  std::optional<Result> next(ResultProducer next_result) override { return next_result(); }
};

/// By sequence_number, which counts from 0; at most max_jobs results may be ahead of the next.
template <class Result>
class OrderedSequencer final : public Sequencer<Result> {
 public:
  using typename Sequencer<Result>::ResultProducer;
  explicit OrderedSequencer(std::size_t max_jobs) : buffer_(max_jobs > 0 ? max_jobs : 1) {}

  std::optional<Result> next(ResultProducer next_result) override {
    std::optional<Result> result = std::exchange(slot(next_sequence_number_), std::nullopt);
    while (!result) {
      result = next_result();
      if (!result) return std::nullopt;
      if (result->sequence_number != next_sequence_number_) {
        slot(result->sequence_number) = std::exchange(result, std::nullopt);
      }
    }
    ++next_sequence_number_;
    return result;
  }

  std::optional<Result>& slot(std::size_t sequence_number) { return buffer_[sequence_number % buffer_.size()]; }

  std::size_t next_sequence_number_ = 0;
  std::vector<std::optional<Result>> buffer_;
};

}  // namespace tenon::data::detail::sequencers
