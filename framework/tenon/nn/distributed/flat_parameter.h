// FlatParameter: parameters of one unit behind each other in one piece of memory that is cut evenly, a share for each
// rank. PyTorch's FlatParameter.
//
//   | weight ............ | bias . | norm . | padding |        of a unit, whole: there while it is used, or always
//   |   rank 0   |   rank 1   |   rank 2   |   rank 3 |        each rank keeps its share, and its gradient's
//
// A member is a view into the whole; what an optimiser is given of it is the part that lies in this rank's share, which
// may be empty. Nothing is copied when a unit is gathered: members look into the memory that arrives.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/tensor/storage.h>
#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::distributed {

/// What of a member lies in a rank's share.
struct ShardRange {
  std::int64_t begin = 0;  ///< of the member's elements
  std::int64_t count = 0;  ///< 0: nothing
};

/// Elements of a flat parameter that each rank keeps: so many of them, rounded up.
TENON_API std::int64_t share_of(std::int64_t elements, int ranks);

/// Of a member that begins at `start` of the whole and has so many elements.
TENON_API ShardRange shard_range(std::int64_t start, std::int64_t elements, std::int64_t share, int rank);

class TENON_EXPORT FlatParameter final : public StorageSource {
 public:
  struct Member {
    std::string name;
    Tensor parameter;  ///< the module's own: a view into the whole
    std::int64_t start = 0;
    ShardRange range;
    Tensor shard;            ///< of one dim, a leaf, for an optimiser
    bool is_there = false;   ///< its gradient, in this backward pass
    bool has_value = false;  ///< and that came from backward, in this pass or one before it that was not reduced
  };

  /// Moves the parameters, of one dtype, into the memory described above, on `device`. `on_use` is called when a member
  /// is read whose memory is not there, and gathers it; null: the whole is kept, and shards look into it.
  TENON_API FlatParameter(const std::vector<std::pair<std::string, Tensor>>& parameters,
                          std::shared_ptr<Communicator> ranks, Device device, std::function<void()> on_use);
  /// Members that were not kept whole have no values any more: whoever reads one gets an Error.
  TENON_API ~FlatParameter() override;
  /// Gathers the unit.
  void bring(StorageImpl& storage) override;

  /// In the order of the module.
  std::vector<Member>& members() { return members_; }
  const std::vector<Member>& members() const { return members_; }
  /// Elements of a rank's share.
  std::int64_t share() const { return share_; }
  /// Whether its members require gradients.
  bool is_trained() const { return members_.front().parameter.requires_grad(); }
  /// Whether it is there between uses too.
  bool is_kept_whole() const { return on_use_ == nullptr; }
  /// Whether the whole is there.
  bool is_there() const;

  /// Begins to bring the whole, unless it is there or on its way. Every rank calls it.
  TENON_API void begin_gather();
  /// Waits for it.
  TENON_API void end_gather();
  /// The whole is given back; a gather on its way is waited for.
  TENON_API void give_back();
  /// Where the whole is kept: takes the shares that the others have updated.
  TENON_API void gather_updates();

  /// The member's gradient goes into the bucket, divided by so many; zeros where it has none.
  TENON_API void put_gradient(Member& member, int divisor);
  /// Members whose gradient has not come in this pass.
  std::size_t missing() const { return missing_; }
  /// Begins to sum the bucket over the ranks; each gets its share.
  TENON_API void begin_reduce();
  struct Reduced {
    double busy_seconds = 0, waited_seconds = 0;
  };
  /// Waits for the sums; the bucket is given back.
  TENON_API Reduced end_reduce();
  /// Shards have the sums as gradients, added to what they have. `is_used`, asked of each
  /// in turn, leaves members out.
  TENON_API void attach_gradients(const std::function<bool(const Member&)>& is_used = {});
  /// The next pass begins: no gradient is there.
  TENON_API void reset();
  /// Bytes of the bucket.
  std::int64_t bucket_bytes() const;

  /// The whole on every rank, in host memory on rank `to`, where members look into it until forget_host_copy().
  TENON_API void copy_to_host(int to);
  /// Members look into the whole again.
  TENON_API void forget_host_copy();

 private:
  Tensor empty(std::int64_t count) const;
  Tensor place_of(const Member& member) const;
  void make_bucket(const Member* first);
  void point_members_at(const Tensor& memory);

  std::shared_ptr<Communicator> ranks_;
  Device device_;
  std::function<void()> on_use_;
  std::vector<Member> members_;
  std::int64_t share_ = 0;
  Tensor whole_;  ///< its storage may have no memory
  Tensor own_;    ///< this rank's share: of its own, or a view of the whole
  Tensor gathered_;
  std::shared_ptr<Work> gathering_;
  std::size_t missing_ = 0;
  Tensor bucket_, sum_;
  std::shared_ptr<Work> reducing_;
};

}  // namespace tenon::distributed
