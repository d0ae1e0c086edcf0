// Who keeps the others waiting: what each rank says of itself, and who of them is to blame. For communicators whose
// ranks can be asked where they are.
//
// Note [Who is missing]: that a rank has not come to an operation does not make it the one that hangs. It may itself
// wait in an operation of another group, for a rank that the first ones do not even talk to. So each rank says what its
// program waits for, and who is to blame is found at the end of that chain.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/export.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// An operation that is not done.
struct AwaitedOperation {
  std::int64_t group = 0;   ///< 0: all ranks
  std::int64_t number = 0;  ///< of the collective in the group, from 1; 0: a send or receive
  std::vector<int> ranks;   ///< who has to come to it; numbers of the run's ranks
  std::string text;         ///< "all_reduce #5 of 4000 bytes among ranks 2, 3"
};

/// Where a rank is, as it says itself.
struct RankPosition {
  std::map<std::int64_t, std::int64_t> came_to;     ///< by group: its collectives that this rank came to
  std::string last;                                 ///< the last one, in words
  std::optional<AwaitedOperation> awaits;           ///< what its program waits for
  std::chrono::duration<double> answered_after{0};  ///< that it was asked
};

struct MissingRanks {
  std::vector<int> ranks;            ///< to blame
  std::vector<std::string> reasons;  ///< of each, a part of a sentence that follows the name of the operation
};

/// Who keeps `own_rank` waiting in `late`. `positions`: by rank, empty of one that does not answer; `text_of`: a rank
/// in words. Where all have come, those are named who took long
/// to answer, as they were stopped until then; where nobody did, none are missing. Where all that are missing wait for
/// each other, all of them are named.
TENON_API MissingRanks missing_ranks(const AwaitedOperation& late, int own_rank,
                                     const std::vector<std::optional<RankPosition>>& positions,
                                     const std::function<std::string(int)>& text_of);

/// What a rank came to a collective with, as far as it must be the same on all.
struct CollectiveSignature {
  CommKind kind = CommKind::kBarrier;
  Dtype dtype = Dtype::kUInt8;
  ReduceOp op = ReduceOp::kSum;  ///< of a reduction
  std::int32_t root = 0;         ///< of a broadcast
  std::uint64_t count = 0;       ///< elements, as CommRequest counts them

  /// Of a collective.
  TENON_API static CollectiveSignature of(const CommRequest& request);
  friend bool operator==(const CollectiveSignature&, const CollectiveSignature&) = default;
  /// "all_reduce of 1000 float32 (sum)", "broadcast of 8 int64 from rank 0".
  TENON_API std::string text() const;
};

/// "ranks 0, 2, 3: this; rank 1: that", the ranks that are fewer than others, and how many things there are.
struct RankCamps {
  std::string text;
  std::vector<int> fewer;  ///< all where no camp is the largest
  std::size_t count = 0;
};
/// Of what each rank has, in words.
TENON_API RankCamps camps_of(const std::map<int, std::string>& by_rank);

/// What is wrong where ranks came to one collective with different things, and the ranks that are fewer than others;
/// empty where all have the same. `what`: "all_reduce #5".
TENON_API std::optional<DistributedError> disagreement(const std::string& what,
                                                       const std::map<int, CollectiveSignature>& signatures);

}  // namespace tenon
