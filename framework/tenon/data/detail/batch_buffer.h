// BatchBuffer: examples come in chunk by chunk from reading threads and go out batch by batch. Writers wait while
// enough is stored, readers wait until a whole batch is there or nobody writes any more.
#pragma once

#include <tenon/data/detail/worker_pool.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace tenon::data {

/// Batch is a container of examples with push_back and size.
template <class Batch, class ExampleSampler>
class BatchBuffer {
 public:
  /// At most about `capacity` examples are kept: a chunk is taken whole when there is room for one more example.
  BatchBuffer(std::size_t batch_size, ExampleSampler& sampler, std::size_t capacity)
      : batch_size_(batch_size), capacity_(capacity), sampler_(sampler) {}

  /// None at the end; only the last batch is smaller. Rethrows what a writer threw, as WorkerException.
  std::optional<Batch> get_batch() {
    std::unique_lock lock(monitor_);
    monitor_.wait([this] { return closed_ || error_ || stored_ >= batch_size_; });
    if (error_) throw WorkerException(std::exchange(error_, nullptr));
    if (batches_.empty()) return std::nullopt;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    stored_ -= batch.size();
    lock.unlock();
    monitor_.notify_all();
    return batch;
  }

  /// Adds a chunk's examples in the sampler's order. Throws Error where the sampler names one that the chunk lacks.
  void add_chunk(Batch chunk) {
    std::unique_lock lock(monitor_);
    monitor_.wait([this] { return closed_ || stored_ < capacity_; });
    if (closed_) return;
    const std::size_t count = chunk.size();
    sampler_.reset(count);
    for (std::size_t left = count; left > 0;) {
      if (batches_.empty() || batches_.back().size() >= batch_size_) batches_.emplace_back();
      Batch& batch = batches_.back();
      const std::size_t room = batch_size_ - batch.size();
      const auto indices = sampler_.next(left < room ? left : room);
      if (!indices || indices->size() == 0) throw Error("an example sampler ended before its chunk did");
      for (const std::size_t index : *indices) {
        if (index >= count) {
          throw Error("Index out of range: an example sampler named " + std::to_string(index) + " in a chunk of " +
                      std::to_string(count));
        }
        batch.push_back(std::move(chunk[index]));
        ++stored_;  // one by one: where the sampler fails, what went in before is there
      }
      left -= left < indices->size() ? left : indices->size();
    }
    lock.unlock();
    monitor_.notify_all();
  }

  /// Hands an error to whoever takes the next batch; others until then are dropped.
  void add_error(std::exception_ptr error) {
    {
      const std::lock_guard lock(monitor_);
      if (!error_) error_ = std::move(error);
    }
    monitor_.notify_all();
  }

  /// Nothing comes any more: readers get what is left, writers stop waiting.
  void close() {
    {
      const std::lock_guard lock(monitor_);
      closed_ = true;
    }
    monitor_.notify_all();
  }

 private:
  const std::size_t batch_size_, capacity_;

  detail::Monitor monitor_;  ///< of all below
  ExampleSampler& sampler_;
  std::deque<Batch> batches_;
  std::size_t stored_ = 0;  ///< examples in all batches
  std::exception_ptr error_;
  bool closed_ = false;
};

}  // namespace tenon::data
