// Units gathered when they are read, and their gradients reduced when they are there.
#include <tenon/nn/distributed/sharding.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/post_accumulate.h>
#include <tenon/core/seconds_since.h>
#include <tenon/dispatch/after_kernel.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/reached_leaves.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <unordered_set>

namespace tenon::distributed {

class Sharding::Impl {
 public:
  Impl(const nn::Module& module, std::shared_ptr<Communicator> ranks, const ShardingOptions& options);
  ~Impl();
  std::vector<FlatParameter*> flats() const;
  std::vector<std::pair<std::string, Tensor>> shards() const;
  void prepare_for_backward(const std::vector<Tensor>& outputs);
  void check_finished() const;
  void set_synchronizing(bool on) { is_synchronizing_ = on; }
  double clip_grad_norm(double max_norm);
  const ReducerStats& stats() const { return stats_; }
  std::int64_t gathers() const { return gathers_; }
  const std::shared_ptr<Communicator>& communicator() const { return ranks_; }

 private:
  struct Unit {
    std::string path;
    std::vector<std::unique_ptr<FlatParameter>> flats;
  };
  void use(std::size_t unit);
  void after_use();
  void gradient_is_there(std::size_t unit, FlatParameter& flat, std::size_t member);
  void send_ready();
  void take_oldest();
  void finish();
  bool is_root(std::size_t unit) const { return units_[unit].path.empty(); }
  [[noreturn]] void refuse_unfinished() const;

  std::shared_ptr<Communicator> ranks_;
  ShardingOptions options_;
  std::vector<Unit> units_;
  std::vector<std::pair<FlatParameter*, std::size_t>> places_;  ///< by parameter
  std::vector<FlatParameter*> order_;                           ///< in which gradients are reduced
  std::size_t sent_ = 0, missing_ = 0, trained_ = 0;
  std::deque<FlatParameter*> on_their_way_;
  std::size_t current_ = 0, previous_ = 0;  ///< units that were read last
  int gathering_ = 0;                       ///< depth
  bool is_synchronizing_ = true, is_after_use_due_ = false;
  ReducerStats stats_;
  std::int64_t gathers_ = 0;
  std::vector<autograd::PostAccumulateHandle> hooks_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  ///< what waits for a kernel asks it
};

Sharding::Impl::Impl(const nn::Module& module, std::shared_ptr<Communicator> ranks, const ShardingOptions& options)
    : ranks_(std::move(ranks)), options_(options) {
  const auto named = module.named_parameters();
  if (named.is_empty()) throw Error("there is no parameter that could be divided over the ranks");
  for (const auto& one : named)
    if (one.value().device() != named[0].value().device())
      throw Error(fmt::format("'{}' is on {}, and '{}' on {}: a module is divided over ranks on one device of each",
                              named[0].key(), named[0].value().device().str(), one.key(), one.value().device().str()));
  places_.resize(named.size());
  for (const ShardUnit& planned : shard_units(module, options_.policy)) {
    const std::size_t number = units_.size();
    Unit& unit = units_.emplace_back(Unit{.path = planned.path, .flats = {}});
    for (const std::vector<std::size_t>& group : planned.groups) {
      std::vector<std::pair<std::string, Tensor>> parameters;
      for (const std::size_t i : group) parameters.emplace_back(named[i].key(), named[i].value());
      const Device device = options_.device.value_or(parameters.front().second.device());
      std::function<void()> on_use;
      if (options_.parameters) on_use = [this, number] { use(number); };
      unit.flats.push_back(std::make_unique<FlatParameter>(parameters, ranks_, device, std::move(on_use)));
      for (std::size_t at = 0; at < group.size(); ++at) places_[group[at]] = {unit.flats.back().get(), at};
    }
  }
  // Where a parameter is registered twice, both names mean the first.
  for (std::size_t i = 0; i < named.size(); ++i)
    for (std::size_t first = 0; places_[i].first == nullptr && first < i; ++first)
      if (named[first].value().is_same(named[i].value())) places_[i] = places_[first];
  for (std::size_t unit = units_.size(); unit-- > 0;) {
    for (const auto& flat : units_[unit].flats) {
      if (!flat->is_trained()) continue;
      order_.push_back(flat.get());
      trained_ += flat->members().size();
      for (std::size_t at = 0; at < flat->members().size(); ++at)
        hooks_.emplace_back(flat->members()[at].parameter,
                            [this, unit, at, into = flat.get()](const Tensor&) { gradient_is_there(unit, *into, at); });
    }
  }
  missing_ = trained_;
}

Sharding::Impl::~Impl() {
  while (!on_their_way_.empty()) {  // their buckets are read until then
    try {
      on_their_way_.front()->end_reduce();
    } catch (const Error&) {  // whoever waits for the gradients was told
    }
    on_their_way_.pop_front();
  }
}

std::vector<FlatParameter*> Sharding::Impl::flats() const {
  std::vector<FlatParameter*> all;
  for (const Unit& unit : units_)
    for (const auto& flat : unit.flats) all.push_back(flat.get());
  return all;
}

std::vector<std::pair<std::string, Tensor>> Sharding::Impl::shards() const {
  std::vector<std::pair<std::string, Tensor>> all;
  std::unordered_set<const FlatParameter::Member*> known;
  for (const auto& [flat, at] : places_) {
    const FlatParameter::Member& member = flat->members()[at];
    if (known.insert(&member).second) all.emplace_back(member.name, member.shard);
  }
  return all;
}

/// See Note [Parameters that come when they are read].
void Sharding::Impl::use(std::size_t unit) {
  ++gathering_;
  try {
    for (const auto& flat : units_[unit].flats) flat->begin_gather();
    for (const auto& flat : units_[unit].flats) flat->end_gather();
  } catch (...) {
    --gathering_;
    throw;
  }
  --gathering_;
  ++gathers_;
  if (is_root(unit)) return;
  previous_ = std::exchange(current_, unit);
  if (std::exchange(is_after_use_due_, true)) return;
  after_kernel([this, alive = std::weak_ptr<int>(alive_)] {
    if (!alive.expired()) after_use();
  });
}

void Sharding::Impl::after_use() {
  is_after_use_due_ = false;
  if (gathering_ > 0) {  // that was a copy of a gather: the operator that wants the unit is still to come
    is_after_use_due_ = true;
    after_kernel([this, alive = std::weak_ptr<int>(alive_)] {
      if (!alive.expired()) after_use();
    });
    return;
  }
  ++gathering_;
  try {
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      if (unit != current_ && !is_root(unit))
        for (const auto& flat : units_[unit].flats) flat->give_back();
    // In forward units come one after the other, in backward the other way round.
    const std::size_t next = 2 * current_ - previous_;
    const bool is_row = current_ == previous_ + 1 || current_ + 1 == previous_;
    if (options_.prefetch && is_row && next < units_.size() && !is_root(next))
      for (const auto& flat : units_[next].flats) flat->begin_gather();
  } catch (const Error&) {  // whoever reads the next unit is told
  }
  --gathering_;
}

void Sharding::Impl::prepare_for_backward(const std::vector<Tensor>& outputs) {
  check_finished();
  if (!options_.find_unused_parameters || !is_synchronizing_) return;
  const auto reached = leaves_reached_from(outputs);
  for (std::size_t unit = units_.size(); unit-- > 0;)
    for (const auto& flat : units_[unit].flats)
      for (std::size_t at = 0; at < flat->members().size() && flat->is_trained(); ++at)
        if (!reached.contains(&flat->members()[at].parameter.impl())) gradient_is_there(unit, *flat, at);
}

void Sharding::Impl::check_finished() const {
  if (missing_ != trained_) refuse_unfinished();
}

void Sharding::Impl::refuse_unfinished() const {
  std::vector<std::string> names;
  for (FlatParameter* const flat : order_)
    for (const FlatParameter::Member& member : flat->members())
      if (!member.is_there && names.size() < 8) names.push_back(member.name);
  throw Error(fmt::format(
      "rank {} of {}: expected to have finished reduction in the prior iteration before starting a new one: {} of {} "
      "parameters got no gradient ({}{}), so the other ranks wait for theirs. Let every parameter take part in the "
      "loss, or set find_unused_parameters",
      ranks_->rank(), ranks_->size(), missing_, trained_, fmt::join(names, ", "),
      missing_ > names.size() ? ", …" : ""));
}

void Sharding::Impl::gradient_is_there(std::size_t unit, FlatParameter& flat, std::size_t at) {
  FlatParameter::Member& member = flat.members()[at];
  member.has_value = member.has_value || member.parameter.grad().defined();
  if (!is_synchronizing_) return;
  if (member.is_there)
    throw Error(fmt::format(
        "rank {} of {}: the gradient of '{}' came twice in one backward pass: the parameter is used inside and outside "
        "of a reentrant checkpoint, or its loss is differentiated twice; the other ranks have the first one already",
        ranks_->rank(), ranks_->size(), member.name));
  if (flat.missing() == flat.members().size())
    while (on_their_way_.size() > (options_.overlap ? 1U : 0U)) take_oldest();  // before there is one more bucket
  flat.put_gradient(member, options_.average ? ranks_->size() : 1);
  --missing_;
  if (flat.missing() > 0) return;
  const auto is_complete = [](const auto& one) { return !one->is_trained() || one->missing() == 0; };
  if (std::ranges::all_of(units_[unit].flats, is_complete))
    for (const auto& one : units_[unit].flats) one->give_back();
  send_ready();
  if (missing_ == 0) finish();
}

void Sharding::Impl::send_ready() {
  for (; sent_ < order_.size() && order_[sent_]->missing() == 0; ++sent_) {
    order_[sent_]->begin_reduce();
    stats_.bytes += order_[sent_]->bucket_bytes();
    on_their_way_.push_back(order_[sent_]);
  }
}

void Sharding::Impl::take_oldest() {
  FlatParameter* const flat = on_their_way_.front();
  on_their_way_.pop_front();
  const FlatParameter::Reduced reduced = flat->end_reduce();
  stats_.busy_seconds += reduced.busy_seconds;
  stats_.waited_seconds += reduced.waited_seconds;
  if (!options_.find_unused_parameters) flat->attach_gradients();
}

void Sharding::Impl::finish() {
  while (!on_their_way_.empty()) take_oldest();
  if (options_.find_unused_parameters) {
    // What no rank used keeps the gradient that it has.
    std::vector<std::uint8_t> used;
    for (FlatParameter* const flat : order_)
      for (const FlatParameter::Member& member : flat->members()) used.push_back(member.has_value ? 1 : 0);
    ranks_->all_reduce({.data = used.data(), .count = used.size(), .dtype = kUInt8}, ReduceOp::kMax)->wait();
    std::size_t next = 0;
    for (FlatParameter* const flat : order_)
      flat->attach_gradients([&](const FlatParameter::Member&) { return used[next++] != 0; });
  }
  for (FlatParameter* const flat : order_) {
    flat->reset();
    for (FlatParameter::Member& member : flat->members()) member.has_value = false;
  }
  sent_ = 0;
  missing_ = trained_;
  ++stats_.reductions;
}

double Sharding::Impl::clip_grad_norm(double max_norm) {
  const NoGradGuard no_grad;
  std::vector<Tensor> gradients;
  double sum = 0;
  for (FlatParameter* const flat : order_)
    for (const FlatParameter::Member& member : flat->members())
      if (member.shard.grad().defined()) gradients.push_back(member.shard.grad());
  for (const Tensor& gradient : gradients) {
    const auto norm = gradient.norm().item<double>();
    sum += norm * norm;
  }
  ranks_->all_reduce({.data = &sum, .count = 1, .dtype = kFloat64}, ReduceOp::kSum)->wait();
  const double norm = std::sqrt(sum), scale = max_norm / (norm + 1e-6);
  if (!(scale >= 1))  // nan scales too, as nn::utils::clip_grad_norm_ does
    for (const Tensor& gradient : gradients) gradient.mul_(scale);
  return norm;
}

Sharding::Sharding(const nn::Module& module, std::shared_ptr<Communicator> ranks, const ShardingOptions& options)
    : impl_(std::make_unique<Impl>(module, std::move(ranks), options)) {}
Sharding::~Sharding() = default;

std::vector<FlatParameter*> Sharding::flats() const { return impl_->flats(); }
std::vector<std::pair<std::string, Tensor>> Sharding::shards() const { return impl_->shards(); }
void Sharding::prepare_for_backward(const std::vector<Tensor>& outputs) { impl_->prepare_for_backward(outputs); }
void Sharding::check_finished() const { impl_->check_finished(); }
void Sharding::set_synchronizing(bool on) { impl_->set_synchronizing(on); }
double Sharding::clip_grad_norm(double max_norm) { return impl_->clip_grad_norm(max_norm); }
const ReducerStats& Sharding::stats() const { return impl_->stats(); }
std::int64_t Sharding::gathers() const { return impl_->gathers(); }
const std::shared_ptr<Communicator>& Sharding::communicator() const { return impl_->communicator(); }

void Sharding::give_back() {
  for (FlatParameter* const flat : flats()) flat->give_back();
}

void Sharding::gather_updates() {
  for (FlatParameter* const flat : flats())
    if (flat->is_trained()) flat->gather_updates();
}

void Sharding::copy_to_host(int to) {
  for (FlatParameter* const flat : flats()) flat->copy_to_host(to);
}

void Sharding::forget_host_copy() {
  for (FlatParameter* const flat : flats()) flat->forget_host_copy();
}

}  // namespace tenon::distributed
