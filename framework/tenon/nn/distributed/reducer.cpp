// Buckets filled by hooks on the leaves, sent in their order, waited for by the hook that fills the last.
#include <tenon/nn/distributed/reducer.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/post_accumulate.h>
#include <tenon/core/seconds_since.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/reached_leaves.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>

namespace tenon::distributed {
namespace {

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel()) * size_of(tensor.scalar_type());
}

}  // namespace

std::vector<std::vector<std::size_t>> bucket_assignment(const std::vector<Tensor>& parameters,
                                                        std::size_t first_bucket_bytes, std::size_t bucket_bytes) {
  struct Open {
    std::vector<std::size_t> members;
    std::size_t bytes = 0;
  };
  std::map<std::pair<std::string, Dtype>, Open> open;  // by device and dtype
  std::vector<std::vector<std::size_t>> buckets;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Tensor& parameter = parameters[i];
    Open& bucket = open[{parameter.device().str(), parameter.scalar_type()}];
    bucket.members.push_back(i);
    bucket.bytes += bytes_of(parameter);
    if (bucket.bytes < (buckets.empty() ? first_bucket_bytes : bucket_bytes)) continue;
    buckets.push_back(std::move(bucket.members));
    bucket = {};
  }
  for (auto& [key, rest] : open)
    if (!rest.members.empty()) buckets.push_back(std::move(rest.members));
  // What is full last is sent last.
  std::ranges::stable_sort(buckets, std::greater{}, [](const auto& members) { return members.back(); });
  return buckets;
}

class Reducer::Impl {
 public:
  Impl(std::vector<std::pair<std::string, Tensor>> parameters, std::shared_ptr<Communicator> ranks,
       const ReducerOptions& options);
  void prepare_for_backward(const std::vector<Tensor>& outputs);
  void check_finished() const;
  void abandon() noexcept { is_expecting_ = has_begun_ = false; }
  const ReducerStats& stats() const { return stats_; }
  const std::vector<std::vector<std::size_t>>& buckets() const { return assignment_; }

 private:
  struct Bucket {
    std::vector<std::size_t> members;  ///< positions of parameters
    std::vector<std::int64_t> starts;  ///< of each in `values`
    Tensor values;
    std::size_t missing = 0;
    std::shared_ptr<Work> work;
  };

  void gradient_is_there(std::size_t parameter);
  void mark_ready(std::size_t parameter);
  void put(std::size_t parameter);
  void send_ready();
  void finish();
  void take_back(Bucket& bucket, const Tensor& used);
  Tensor place_of(std::size_t parameter) const;
  Tensor send_used();
  [[noreturn]] void refuse_unfinished() const;

  std::vector<std::pair<std::string, Tensor>> parameters_;
  std::shared_ptr<Communicator> ranks_;
  ReducerOptions options_;
  std::vector<std::vector<std::size_t>> assignment_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  ///< by parameter: bucket, position in it
  std::vector<bool> is_ready_, is_used_;
  std::size_t missing_ = 0, sent_ = 0;
  bool is_expecting_ = false;  ///< the next backward pass is reduced
  bool has_begun_ = false;     ///< and has brought a gradient
  ReducerStats stats_;
  std::vector<autograd::PostAccumulateHandle> hooks_;
};

Reducer::Impl::Impl(std::vector<std::pair<std::string, Tensor>> parameters, std::shared_ptr<Communicator> ranks,
                    const ReducerOptions& options)
    : ranks_(std::move(ranks)), options_(options) {
  for (auto& named : parameters)
    if (named.second.requires_grad()) parameters_.push_back(std::move(named));
  if (parameters_.empty())
    throw Error("there is no parameter that requires a gradient, so that nothing is to be reduced");
  std::vector<Tensor> tensors;
  for (const auto& [name, parameter] : parameters_) tensors.push_back(parameter);
  assignment_ = bucket_assignment(tensors, options_.first_bucket_bytes, options_.bucket_bytes);
  places_.resize(parameters_.size());
  is_ready_.resize(parameters_.size());
  is_used_.resize(parameters_.size());
  PurposeGuard purpose(Purpose::kWorkspace);
  for (const auto& members : assignment_) {
    Bucket bucket{.members = members};
    std::int64_t size = 0;
    for (std::size_t at = 0; at < members.size(); ++at) {
      places_[members[at]] = {buckets_.size(), at};
      bucket.starts.push_back(size);
      size += tensors[members[at]].numel();
    }
    const Tensor& like = tensors[members.front()];
    bucket.values = tenon::zeros({size}, TensorOptions(like.scalar_type()).device(like.device()));
    buckets_.push_back(std::move(bucket));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    hooks_.emplace_back(parameters_[i].second, [this, i](const Tensor&) { gradient_is_there(i); });
}

Tensor Reducer::Impl::place_of(std::size_t parameter) const {
  const auto& [at, position] = places_[parameter];
  const Tensor& tensor = parameters_[parameter].second;
  return buckets_[at].values.narrow(0, buckets_[at].starts[position], tensor.numel()).view(tensor.sizes());
}

void Reducer::Impl::prepare_for_backward(const std::vector<Tensor>& outputs) {
  if (has_begun_) refuse_unfinished();
  is_expecting_ = true;
  is_ready_.assign(parameters_.size(), false);
  missing_ = parameters_.size();
  sent_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.members.size();
    bucket.work.reset();
  }
  if (!options_.find_unused_parameters) return;
  const auto reached = leaves_reached_from(outputs);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (!reached.contains(&parameters_[i].second.impl())) mark_ready(i);
}

void Reducer::Impl::check_finished() const {
  if (is_expecting_) refuse_unfinished();
}

void Reducer::Impl::refuse_unfinished() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parameters_.size() && names.size() < 8; ++i)
    if (!is_ready_[i]) names.push_back(parameters_[i].first);
  throw Error(fmt::format(
      "rank {} of {}: expected to have finished reduction in the prior iteration before starting a new one: {} of {} "
      "parameters got no gradient ({}{}), so the other ranks wait for theirs. Let every parameter take part in the "
      "loss, "
      "or set find_unused_parameters",
      ranks_->rank(), ranks_->size(), missing_, parameters_.size(), fmt::join(names, ", "),
      missing_ > names.size() ? ", …" : ""));
}

void Reducer::Impl::gradient_is_there(std::size_t parameter) {
  is_used_[parameter] = true;
  if (!is_expecting_) return;
  if (is_ready_[parameter])
    throw Error(fmt::format(
        "rank {} of {}: the gradient of '{}' came twice in one backward pass: the parameter is used inside and outside "
        "of a reentrant checkpoint, or its loss is differentiated twice; the other ranks have the first one already",
        ranks_->rank(), ranks_->size(), parameters_[parameter].first));
  has_begun_ = true;
  mark_ready(parameter);
}

void Reducer::Impl::mark_ready(std::size_t parameter) {
  put(parameter);
  is_ready_[parameter] = true;
  --missing_;
  --buckets_[places_[parameter].first].missing;
  if (options_.overlap || missing_ == 0) send_ready();
  if (missing_ == 0) finish();
}

/// The gradient into its bucket; zeros where this rank has none.
void Reducer::Impl::put(std::size_t parameter) {
  const NoGradGuard no_grad;
  const Tensor& leaf = parameters_[parameter].second;
  const Tensor place = place_of(parameter), gradient = leaf.grad();
  if (!gradient.defined()) {
    place.zero_();
  } else if (gradient.data_ptr() != place.data_ptr()) {
    place.copy_(gradient);
    if (options_.gradient_as_bucket_view) leaf.mutable_grad() = place;
  }
  if (options_.average && ranks_->size() > 1) place.div_(ranks_->size());
}

void Reducer::Impl::send_ready() {
  while (sent_ < buckets_.size() && buckets_[sent_].missing == 0) {
    Bucket& bucket = buckets_[sent_++];
    bucket.work = all_reduce(*ranks_, bucket.values);
    stats_.bytes += static_cast<std::int64_t>(bytes_of(bucket.values));
  }
}

/// By rank, which parameters had a gradient since the last reduction: what no rank used keeps the gradient that it has.
Tensor Reducer::Impl::send_used() {
  Tensor used = tenon::zeros({static_cast<std::int64_t>(parameters_.size())}, TensorOptions(kInt32));
  for (std::size_t i = 0; i < parameters_.size(); ++i) used.data_ptr<std::int32_t>()[i] = is_used_[i] ? 1 : 0;
  all_reduce(*ranks_, used, ReduceOp::kMax)->wait();
  return used;
}

void Reducer::Impl::finish() {
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kGradient);
  const auto start = std::chrono::steady_clock::now();
  is_expecting_ = has_begun_ = false;
  for (const Bucket& bucket : buckets_) bucket.work->wait();
  stats_.waited_seconds += seconds_since(start);
  const Tensor used = options_.find_unused_parameters ? send_used() : Tensor();
  for (Bucket& bucket : buckets_) {
    stats_.busy_seconds += bucket.work->seconds();
    take_back(bucket, used);
    bucket.work.reset();
  }
  is_used_.assign(parameters_.size(), false);
  ++stats_.reductions;
}

void Reducer::Impl::take_back(Bucket& bucket, const Tensor& used) {
  for (const std::size_t parameter : bucket.members) {
    if (used.defined() && used.data_ptr<std::int32_t>()[parameter] == 0) continue;
    const Tensor& leaf = parameters_[parameter].second;
    const Tensor place = place_of(parameter);
    Tensor& gradient = leaf.mutable_grad();
    if (options_.gradient_as_bucket_view) {
      gradient = place;
    } else if (gradient.defined()) {
      gradient.detach().copy_(place);
    } else {
      gradient = place.clone();
    }
  }
}

Reducer::Reducer(std::vector<std::pair<std::string, Tensor>> parameters, std::shared_ptr<Communicator> ranks,
                 const ReducerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(parameters), std::move(ranks), options)) {}
Reducer::~Reducer() = default;

void Reducer::prepare_for_backward(const std::vector<Tensor>& outputs) { impl_->prepare_for_backward(outputs); }
void Reducer::check_finished() const { impl_->check_finished(); }
void Reducer::abandon() noexcept { impl_->abandon(); }
const ReducerStats& Reducer::stats() const { return impl_->stats(); }
const std::vector<std::vector<std::size_t>>& Reducer::buckets() const { return impl_->buckets(); }

}  // namespace tenon::distributed
