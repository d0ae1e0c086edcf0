// How often the blocks of a step are used, beside the step before: one that has been used as often as its like was then
// has had its last use.
#pragma once

#include <tenon/core/scope/context.h>
#include <tenon/memory/purpose.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace tenon::memory {

/// Not thread-safe.
class StepUses {
 public:
  /// What tells a block apart from the others of its step: where it was made, for what, how large it is, and the
  /// how-manieth of these it was.
  struct Name {
    scopes::ContextId context = 0;
    Purpose purpose = Purpose::kOther;
    std::size_t bytes = 0;
    std::uint32_t which = 0;
    bool operator==(const Name&) const = default;
  };

  /// Of a block that is made now.
  Name next(scopes::ContextId context, Purpose purpose, std::size_t bytes) {
    Name name{context, purpose, bytes, 0};
    name.which = ++made_[name];
    now_.try_emplace(name, 0U);  // one that is never used had no uses, which is more than not knowing
    return name;
  }
  void used(const Name& name) { ++now_[name]; }
  /// How many more uses it had in the step before than it has had in this one; nothing where that step had no such
  /// block.
  std::optional<std::int64_t> uses_to_come(const Name& name) const {
    const auto before = before_.find(name);
    if (before == before_.end()) return std::nullopt;
    const auto now = now_.find(name);
    return static_cast<std::int64_t>(before->second) - (now == now_.end() ? 0 : static_cast<std::int64_t>(now->second));
  }
  void begin_step() {
    before_.swap(now_);
    now_.clear();
    made_.clear();
  }

 private:
  struct Hash {
    std::size_t operator()(const Name& name) const {
      return (name.bytes * 0x9E3779B97F4A7C15ULL) ^ (name.context * 0xC2B2AE3D27D4EB4FULL) ^
             (static_cast<std::size_t>(name.which) << 8) ^ static_cast<std::size_t>(name.purpose);
    }
  };
  std::unordered_map<Name, std::uint32_t, Hash> made_;  ///< so far in this step, with `which` = 0
  std::unordered_map<Name, std::uint32_t, Hash> now_, before_;
};

}  // namespace tenon::memory
