// Follower: which block of a plan a request is.
//
// A request is known by its bytes, its stream and its purpose. It is looked for where the plan is now, then near by: a
// request more or one fewer than when the plan was recorded puts the others neither out of step nor in the wrong
// places. One that is not found there, but that the plan has elsewhere behind the same requests as now, says where the
// run is: so it comes from the end of the last recorded step back to the beginning of one.
#pragma once

#include <tenon/memory/allocator.h>
#include <tenon/memory/packing/plan_file.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tenon::planned {

class Follower {
 public:
  /// How far around its place a request is looked for.
  Follower(packing::Plan plan, std::size_t window);

  /// The block that this request is; none: the plan has none such near by.
  std::optional<std::size_t> follow(const Request& request);
  const packing::PlannedBlock& block(std::size_t number) const { return plan_.blocks[number]; }
  const packing::Plan& plan() const { return plan_; }
  /// The block that the next request should be.
  std::size_t place() const { return next_; }

  std::uint64_t requests() const { return requests_; }
  std::uint64_t found() const { return found_; }
  /// After enough requests: most of them are not in the plan, which is another model's.
  bool is_foreign() const { return requests_ >= kTrial && found_ < requests_ / 2; }

 private:
  static constexpr std::uint64_t kTrial = 64;

  struct Key {
    std::uint64_t bytes = 0;
    std::uint32_t stream = 0;
    Purpose purpose = Purpose::kOther;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };

  void number_blocks();
  Key key_of(const Request& request);
  bool matches(std::size_t number, const Key& key) const;
  bool is_served(std::size_t number) const { return served_[number] == round_; }
  std::optional<std::size_t> near_by(const Key& key) const;
  std::optional<std::size_t> by_the_last_requests() const;
  void serve(std::size_t number);

  packing::Plan plan_;
  const std::size_t window_;
  bool has_purposes_ = false;
  std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash> numbers_;  ///< of blocks by key, rising
  std::map<std::uint64_t, std::uint32_t> streams_;                        ///< in the order of their first requests
  std::vector<std::uint32_t> served_;                                     ///< by block: in which round
  std::uint32_t round_ = 1;
  std::size_t next_ = 0;
  std::vector<Key> last_;  ///< requests, the newest at the end
  std::uint64_t requests_ = 0;
  std::uint64_t found_ = 0;
};

}  // namespace tenon::planned
