// The iterator of a DataLoader: an input iterator that fetches a batch when it is looked at.
#pragma once

#include <tenon/core/error.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace tenon::data {

template <class Batch>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;
  using pointer = Batch*;
  using reference = Batch&;
  using iterator_category = std::input_iterator_tag;
  using NextBatch = std::function<std::optional<Batch>()>;

  /// The end.
  Iterator() = default;
  explicit Iterator(NextBatch next) : position_(std::make_shared<Position>(Position{std::move(next), {}, false})) {}

  Iterator& operator++() {
    if (!position_) throw Error("Incrementing the DataLoader's past-the-end iterator is not allowed");
    position_->fetch();
    if (!position_->batch) throw Error("Attempted to increment iterator past the end");
    position_->batch = position_->next();
    return *this;
  }
  Batch& operator*() {
    if (!position_) throw Error("Dereferencing the DataLoader's past-the-end iterator is not allowed");
    position_->fetch();
    if (!position_->batch) throw Error("Attempted to dereference iterator that was past the end");
    return *position_->batch;
  }
  Batch* operator->() { return &**this; }

  /// Equal when both are at the end, or the same position.
  bool operator==(const Iterator& other) const { return position_ == other.position_ || (at_end() && other.at_end()); }
  bool operator!=(const Iterator& other) const { return !(*this == other); }

  /// The iterator itself, for a range-based loop.
  Iterator& begin() { return *this; }
  /// The end of the pass.
  Iterator end() { return {}; }

 private:
  struct Position {
    NextBatch next;
    std::optional<Batch> batch;
    bool fetched;
    void fetch() {
      if (!fetched) batch = next();
      fetched = true;
    }
  };
  /// Whether the pass is over; fetches the next batch to know.
  bool at_end() const {
    if (!position_) return true;
    position_->fetch();
    return !position_->batch;
  }

  std::shared_ptr<Position> position_;
};

}  // namespace tenon::data
