// Follower: which block of a plan a request is.
//
// A request is known by its bytes, its stream and its purpose. Each stream is followed by itself: threads that take
// turns otherwise than when the plan was recorded are where they were, each in what it asks for. A request is looked
// for where its stream is now, then near by: a request more or one fewer than when the plan was recorded puts the
// others neither out of step nor in the wrong places. One that is not found there, but that the plan has elsewhere
// behind the same requests as now, says where the stream is: so it comes from the end of the last recorded step back to
// the beginning of one.
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
  /// The first block that is still to come, on whatever stream.
  std::size_t place() const;

  std::uint64_t requests() const { return requests_; }
  std::uint64_t found() const { return found_; }
  /// After enough requests: most of them are not in the plan, which is another model's.
  bool is_foreign() const { return requests_ >= kTrial && found_ < requests_ / 2; }

 private:
  static constexpr std::uint64_t kTrial = 64;

  struct Key {
    std::uint64_t bytes = 0;
    Purpose purpose = Purpose::kOther;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  /// One stream of the plan, and how far it has come. Its blocks are counted by themselves.
  struct Stream {
    std::vector<std::uint32_t> blocks;                                      ///< their numbers in the plan
    std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash> of_key{};  ///< rising
    std::vector<std::uint32_t> served{};                                    ///< by block: in which round
    std::uint32_t round = 1;
    std::size_t next = 0;
    std::vector<Key> last{};  ///< requests, the newest at the end
    bool is_taken = false;    ///< a stream of this run is it
  };

  void sort_by_stream();
  Key key_of(const Request& request) const;
  Key key_of_block(std::size_t number) const;
  Stream* stream_of(const Request& request, const Key& key);
  std::optional<std::size_t> find(const Stream& stream, const Key& key) const;
  std::optional<std::size_t> near_by(const Stream& stream, const Key& key) const;
  std::optional<std::size_t> by_the_last_requests(const Stream& stream) const;
  void serve(Stream& stream, std::size_t index);

  packing::Plan plan_;
  const std::size_t window_;
  bool has_purposes_ = false;
  std::vector<Stream> streams_;             ///< of the plan
  std::map<std::uint64_t, Stream*> by_id_;  ///< of the run; null: one more than the plan has
  std::uint64_t requests_ = 0;
  std::uint64_t found_ = 0;
};

}  // namespace tenon::planned
