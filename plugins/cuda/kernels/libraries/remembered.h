// What a library's heuristics said of a problem, so that they are asked once.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <mutex>
#include <stdexcept>

namespace tenon::cuda {

/// Everything that an answer depends on, in a fixed order.
class ProblemKey {
 public:
  ProblemKey& add(std::int64_t number) {
    numbers_.at(count_++) = number;
    return *this;
  }
  ProblemKey& add(std::initializer_list<std::int64_t> numbers) {
    for (const std::int64_t number : numbers) add(number);
    return *this;
  }
  bool operator<(const ProblemKey& other) const { return numbers_ < other.numbers_; }

 private:
  std::array<std::int64_t, 40> numbers_{};
  std::size_t count_ = 0;
};

template <class Answer>
class Remembered {
 public:
  /// The answer to `key`, by ask() the first time.
  template <class Ask>
  Answer get(const ProblemKey& key, const Ask& ask) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = answers_.find(key);
      if (found != answers_.end()) return found->second;
    }
    const Answer answer = ask();  // twice at worst, if two threads ask at once
    const std::lock_guard lock(mutex_);
    return answers_.try_emplace(key, answer).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<ProblemKey, Answer> answers_;
};

}  // namespace tenon::cuda
