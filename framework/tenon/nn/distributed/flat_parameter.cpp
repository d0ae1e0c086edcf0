// Members as views, and what moves between ranks.
#include <tenon/nn/distributed/flat_parameter.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/seconds_since.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>

#include <algorithm>
#include <chrono>

namespace tenon::distributed {
namespace {

/// Of parameters that nobody gathers any more.
class Gone final : public StorageSource {
 public:
  void bring(StorageImpl&) override {
    throw Error(
        "a parameter that was divided over the ranks is read, and what divided it is gone: keep the "
        "FullyShardedDataParallel, or the Sharding, for as long as its module is used");
  }
};

Gone& gone() {
  static auto* const instance = new Gone;  // storages may live longer than statics
  return *instance;
}

}  // namespace

std::int64_t share_of(std::int64_t elements, int ranks) { return (elements + ranks - 1) / ranks; }

ShardRange shard_range(std::int64_t start, std::int64_t elements, std::int64_t share, int rank) {
  const std::int64_t begin = std::max(start, share * rank), end = std::min(start + elements, share * (rank + 1));
  return begin < end ? ShardRange{.begin = begin - start, .count = end - begin} : ShardRange{};
}

FlatParameter::FlatParameter(const std::vector<std::pair<std::string, Tensor>>& parameters,
                             std::shared_ptr<Communicator> ranks, Device device, std::function<void()> on_use)
    : ranks_(std::move(ranks)), device_(device), on_use_(std::move(on_use)) {
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kParameter);
  std::int64_t elements = 0;
  for (const auto& [name, parameter] : parameters) {
    members_.push_back({.name = name, .parameter = parameter, .start = elements});
    elements += parameter.numel();
  }
  share_ = share_of(elements, ranks_->size());
  whole_ =
      tenon::zeros({share_ * ranks_->size()}, TensorOptions(parameters.front().second.scalar_type()).device(device_));
  for (const Member& member : members_)
    whole_.narrow(0, member.start, member.parameter.numel()).copy_(member.parameter.detach().reshape({-1}));
  const Tensor part = whole_.narrow(0, share_ * ranks_->rank(), share_);
  own_ = is_kept_whole() ? part : part.clone();
  for (Member& member : members_) {
    member.range = shard_range(member.start, member.parameter.numel(), share_, ranks_->rank());
    const std::int64_t at = member.range.count > 0 ? member.start + member.range.begin - share_ * ranks_->rank() : 0;
    member.shard = own_.narrow(0, at, member.range.count).detach();
    member.shard.set_requires_grad(member.parameter.requires_grad());
  }
  point_members_at(whole_);
  if (!is_kept_whole()) {
    whole_.impl().storage().leave_to(this);
    give_back();
  }
  reset();
}

FlatParameter::~FlatParameter() {
  gathering_.reset();  // waits
  if (is_kept_whole()) return;
  whole_.impl().storage().give_back();
  whole_.impl().storage().leave_to(&gone());
}

void FlatParameter::point_members_at(const Tensor& memory) {
  for (const Member& member : members_) {
    TensorImpl& impl = member.parameter.impl();
    Dims sizes = impl.sizes();
    impl.set_storage(memory.impl().storage_ptr(), impl.dtype());
    impl.set_strided(sizes, contiguous_strides(sizes), member.start);
  }
}

Tensor FlatParameter::empty(std::int64_t count) const {
  return tenon::empty({count}, TensorOptions(whole_.scalar_type()).device(device_));
}

bool FlatParameter::is_there() const { return whole_.impl().storage().is_there(); }

void FlatParameter::bring(StorageImpl&) { on_use_(); }

void FlatParameter::begin_gather() {
  if (is_there() || gathering_) return;
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kParameter);
  gathered_ = empty(share_ * ranks_->size());
  gathering_ = all_gather_into_tensor(*ranks_, gathered_, own_);
}

void FlatParameter::end_gather() {
  if (!gathering_) return;
  const NoGradGuard no_grad;
  gathering_->wait();
  gathering_.reset();
  whole_.impl().storage().take_memory_of(gathered_.impl().storage());
  gathered_ = Tensor();
}

void FlatParameter::give_back() {
  if (is_kept_whole()) return;
  end_gather();
  whole_.impl().storage().give_back();
}

void FlatParameter::gather_updates() {
  if (!is_kept_whole()) return;
  const NoGradGuard no_grad;
  all_gather_into_tensor(*ranks_, whole_, own_)->wait();
}

void FlatParameter::put_gradient(Member& member, int divisor) {
  const NoGradGuard no_grad;
  member.is_there = true;
  --missing_;
  Tensor& gradient = member.parameter.mutable_grad();
  if (!gradient.defined()) {
    if (bucket_.defined()) place_of(member).zero_();
    return;
  }
  if (!bucket_.defined()) make_bucket(&member);
  const Tensor place = place_of(member);
  place.copy_(gradient.detach().reshape({-1}));
  if (divisor > 1) place.div_(divisor);
  gradient = Tensor();
}

Tensor FlatParameter::place_of(const Member& member) const {
  return bucket_.narrow(0, member.start, member.parameter.numel());
}

/// With zeros where no gradient will come.
void FlatParameter::make_bucket(const Member* first) {
  const PurposeGuard purpose(Purpose::kGradient);
  bucket_ = empty(share_ * ranks_->size());
  const std::int64_t used = members_.back().start + members_.back().parameter.numel();
  bucket_.narrow(0, used, bucket_.numel() - used).zero_();
  for (const Member& member : members_)
    if (member.is_there && &member != first) place_of(member).zero_();
}

std::int64_t FlatParameter::bucket_bytes() const {
  return share_ * ranks_->size() * static_cast<std::int64_t>(size_of(whole_.scalar_type()));
}

void FlatParameter::begin_reduce() {
  const NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kGradient);
  if (!bucket_.defined()) make_bucket(nullptr);
  sum_ = empty(share_);
  reducing_ = reduce_scatter_tensor(*ranks_, sum_, bucket_);
}

FlatParameter::Reduced FlatParameter::end_reduce() {
  const auto start = std::chrono::steady_clock::now();
  reducing_->wait();
  const Reduced reduced = {.busy_seconds = reducing_->seconds(), .waited_seconds = seconds_since(start)};
  reducing_.reset();
  bucket_ = Tensor();
  return reduced;
}

void FlatParameter::attach_gradients(const std::function<bool(const Member&)>& is_used) {
  const NoGradGuard no_grad;
  for (Member& member : members_) {
    const bool is_left_out = is_used && !is_used(member);
    if (is_left_out || member.range.count == 0) continue;
    const std::int64_t at = member.start + member.range.begin - share_ * ranks_->rank();
    const Tensor sum = sum_.narrow(0, at, member.range.count);
    Tensor& gradient = member.shard.mutable_grad();
    if (gradient.defined()) {
      gradient.detach().add_(sum);
    } else {
      gradient = sum;
    }
  }
  sum_ = Tensor();
}

void FlatParameter::reset() {
  missing_ = members_.size();
  for (Member& member : members_) member.is_there = false;
}

void FlatParameter::copy_to_host(int to) {
  if (is_kept_whole()) return;
  begin_gather();
  end_gather();
  if (ranks_->rank() == to) {
    const NoGradGuard no_grad;
    const PurposeGuard purpose(Purpose::kOther);
    const Tensor copy = device_.is_cpu() ? whole_.clone() : whole_.to(Device(kCPU), whole_.scalar_type());
    point_members_at(copy);
  }
  give_back();
}

void FlatParameter::forget_host_copy() {
  if (!is_kept_whole()) point_members_at(whole_);
}

}  // namespace tenon::distributed
