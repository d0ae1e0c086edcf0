// Stages, their schedules, and a step that runs them.
#include <tenon/nn/pipeline.h>

#include <tenon/autograd/autocast.h>
#include <tenon/autograd/autograd.h>
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/device/devices.h>
#include <tenon/device/memory_api.h>
#include <tenon/device/order/stream.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

namespace tenon::nn::parallel {

PipelineOptions& PipelineOptions::micro_batches(std::int64_t count) {
  micro_batches_ = count;
  return *this;
}
PipelineOptions& PipelineOptions::schedule(PipelineSchedule schedule) {
  schedule_ = schedule;
  return *this;
}
PipelineOptions& PipelineOptions::balance(std::vector<std::int64_t> modules) {
  balance_ = std::move(modules);
  return *this;
}

namespace {

/// What one stage does in a step, in order.
std::vector<PipelinePass> passes_of_stage(PipelineSchedule schedule, std::int64_t stage, std::int64_t stages,
                                          std::int64_t micro_batches) {
  std::vector<PipelinePass> passes;
  if (schedule == PipelineSchedule::kGPipe) {
    for (std::int64_t i = 0; i < micro_batches; ++i) passes.push_back({stage, i, false});
    for (std::int64_t i = micro_batches; i-- > 0;) passes.push_back({stage, i, true});
    return passes;
  }
  const std::int64_t ahead = std::min(stages - stage, micro_batches);  // forward passes before the first backward
  for (std::int64_t i = 0; i < ahead; ++i) passes.push_back({stage, i, false});
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    passes.push_back({stage, i, true});
    if (ahead + i < micro_batches) passes.push_back({stage, ahead + i, false});
  }
  return passes;
}

}  // namespace

std::vector<PipelinePass> pipeline_passes(PipelineSchedule schedule, std::int64_t stages, std::int64_t micro_batches) {
  std::vector<std::vector<PipelinePass>> queues;
  for (std::int64_t stage = 0; stage < stages; ++stage)
    queues.push_back(passes_of_stage(schedule, stage, stages, micro_batches));
  std::vector<std::size_t> next(queues.size(), 0);
  std::vector<std::vector<bool>> forward(queues.size(), std::vector<bool>(static_cast<std::size_t>(micro_batches)));
  std::vector<std::vector<bool>> backward = forward;
  const auto can_run = [&](const PipelinePass& pass) {
    const auto s = static_cast<std::size_t>(pass.stage), i = static_cast<std::size_t>(pass.micro_batch);
    if (pass.backward) return static_cast<bool>(s + 1 == queues.size() ? forward[s][i] : backward[s + 1][i]);
    return s == 0 || forward[s - 1][i];
  };
  std::vector<PipelinePass> order;
  const std::size_t count = queues.size() * 2 * static_cast<std::size_t>(micro_batches);
  while (order.size() < count) {
    // A tick: every stage that can runs its next pass, on what the tick before left.
    std::vector<PipelinePass> tick;
    for (std::size_t s = 0; s < queues.size(); ++s)
      if (next[s] < queues[s].size() && can_run(queues[s][next[s]])) tick.push_back(queues[s][next[s]++]);
    TENON_ASSERT(!tick.empty(), "a schedule of a pipeline whose stages wait for each other");
    for (const PipelinePass& pass : tick)
      (pass.backward ? backward
                     : forward)[static_cast<std::size_t>(pass.stage)][static_cast<std::size_t>(pass.micro_batch)] =
          true;
    order.insert(order.end(), tick.begin(), tick.end());
  }
  return order;
}

namespace {

std::int64_t elements_of(const Module& module) {
  std::int64_t elements = 0;
  for (const Tensor& parameter : module.parameters()) elements += parameter.numel();
  return elements;
}

/// Cuts where the parameters so far come nearest to an equal share, each stage with one module at least.
std::vector<std::int64_t> balanced(const std::vector<std::int64_t>& weights, std::size_t stages) {
  const double whole = static_cast<double>(std::accumulate(weights.begin(), weights.end(), std::int64_t{0}));
  std::vector<std::int64_t> counts;
  std::size_t at = 0;
  double before = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::size_t last = weights.size() - (stages - stage - 1);  // one module is left for each later stage
    const double share = whole * static_cast<double>(stage + 1) / static_cast<double>(stages);
    std::size_t end = at + 1;
    before += static_cast<double>(weights[at]);
    while (end < last &&
           (stage + 1 == stages || weights[end] == 0 || before + static_cast<double>(weights[end]) / 2 <= share))
      before += static_cast<double>(weights[end++]);
    counts.push_back(static_cast<std::int64_t>(end - at));
    at = end;
  }
  return counts;
}

}  // namespace

std::vector<std::int64_t> pipeline_balance(const Sequential& model, std::size_t stages,
                                           const PipelineOptions& options) {
  if (stages == 0) throw Error("Pipeline: no device is named");
  if (stages > model->size())
    throw Error(fmt::format("Pipeline: {} devices for {} modules: a stage needs one at least", stages, model->size()));
  if (options.micro_batches() < 1)
    throw Error(fmt::format("Pipeline: {} micro-batches: there must be one at least", options.micro_batches()));
  const std::vector<std::int64_t>& given = options.balance();
  if (given.empty()) {
    std::vector<std::int64_t> weights;
    for (std::size_t i = 0; i < model->size(); ++i) weights.push_back(elements_of(*model->ptr(i)));
    return balanced(weights, stages);
  }
  const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
  if (given.size() != stages || sum != static_cast<std::int64_t>(model->size()) ||
      *std::min_element(given.begin(), given.end()) < 1) {
    throw Error(
        fmt::format("Pipeline: the balance names {} modules for {} stages; the model has {} modules, and there "
                    "are {} devices",
                    sum, given.size(), model->size(), stages));
  }
  return given;
}

namespace detail {

/// A tensor on its way to another stage, or there.
struct Sent {
  Tensor tensor;
  std::shared_ptr<Event> arrived;  ///< null: it is there
};

/// From one stage to a neighbour. Copies have streams of their own: on those that compute, a copy would hold up its
/// sender until the receiver had done what is queued there.
class Link {
 public:
  Link(Device from, Device to) : to_(to) {
    const bool has_streams = from.type() == to.type() && !(from == to) && device_properties(from).asynchronous;
    if (has_streams) out_.emplace(from), in_.emplace(to);
  }

  /// Queues the copy; what this thread's streams compute goes on.
  Sent send(const Tensor& tensor) const {
    if (!out_) return {tensor.to(to_, tensor.scalar_type()), nullptr};
    Event made(out_->device());
    made.record();
    out_->wait_event(made);
    Sent sent{{}, std::make_shared<Event>(to_)};
    {
      const StreamGuard from(*out_), to(*in_);
      sent.tensor = tensor.to(to_, tensor.scalar_type());
      sent.arrived->record();
    }
    tensor.record_stream(*out_);
    return sent;
  }

  /// The tensor, once what this thread's stream computes comes after the copy.
  static Tensor receive(Sent sent) {
    if (sent.arrived == nullptr) return sent.tensor;
    const StreamRef computing = current_stream(sent.tensor.device());
    sent.arrived->block(computing);
    sent.tensor.record_stream(computing);
    return sent.tensor;
  }

 private:
  Device to_;
  std::optional<Stream> out_, in_;
};

template <class T>
using Slot = std::map<std::int64_t, T>;

/// What one stage has in a step, by micro-batch. What a stage hands on is sent at once: behind the stage's next pass it
/// would come a pass too late.
struct StageState {
  Slot<Sent> arriving;   ///< outputs of the stage before
  Slot<Sent> gradients;  ///< of what was sent to the stage behind
  Slot<Tensor> inputs;   ///< leaves, from forward to backward
  Slot<Tensor> outputs;  ///< the same; on the last stage its part of the loss
};

template <class T>
T take(Slot<T>& slot, std::int64_t micro_batch) {
  auto node = slot.extract(micro_batch);
  return node ? std::move(node.mapped()) : T();
}

}  // namespace detail

struct Pipeline::Parts {
  PipelineOptions options;
  std::vector<PipelineStage> stages;
  std::vector<std::vector<AnyModule>> modules;  ///< by stage
  std::vector<detail::Link> onward, back;       ///< between stage i and stage i + 1

  Tensor run(std::size_t stage, Tensor x) {
    for (AnyModule& module : modules[stage]) x = module.forward(x);
    return x;
  }
};

Pipeline::Pipeline(const Sequential& model, std::vector<Device> devices, const PipelineOptions& options)
    : parts_(std::make_unique<Parts>()) {
  const std::vector<std::int64_t> counts = pipeline_balance(model, devices.size(), options);
  const std::vector<std::string> names = model->named_children().keys();
  parts_->options = options;
  auto next = model->begin();
  std::size_t name = 0;
  for (std::size_t stage = 0; stage < devices.size(); ++stage) {
    PipelineStage& made = parts_->stages.emplace_back(PipelineStage{.device = devices[stage]});
    std::vector<AnyModule>& modules = parts_->modules.emplace_back();
    for (std::int64_t i = 0; i < counts[stage]; ++i, ++next) {
      next->ptr()->to(devices[stage]);
      made.modules.push_back(names[name++]);
      made.parameters += elements_of(*next->ptr());
      modules.push_back(*next);
    }
  }
  for (std::size_t stage = 0; stage + 1 < devices.size(); ++stage) {
    parts_->onward.emplace_back(devices[stage], devices[stage + 1]);
    parts_->back.emplace_back(devices[stage + 1], devices[stage]);
  }
}

Pipeline::~Pipeline() = default;

const std::vector<PipelineStage>& Pipeline::stages() const { return parts_->stages; }

Tensor Pipeline::forward(const Tensor& input) {
  Tensor x = input;
  for (std::size_t stage = 0; stage < parts_->stages.size(); ++stage)
    x = parts_->run(stage, x.to(parts_->stages[stage].device, x.scalar_type()));
  return x;
}

Tensor Pipeline::step(const Tensor& input, const Tensor& target, const Loss& loss) {
  std::vector<PipelineStage>& stages = parts_->stages;
  const std::int64_t count = parts_->options.micro_batches();
  if (input.size(0) < count) {
    throw Error(fmt::format("Pipeline: {} micro-batches of a batch of {} examples", count, input.size(0)));
  }
  const bool wants_gradient = input.requires_grad();
  const Tensor whole = input.detach().to(stages.front().device, input.scalar_type());
  const auto inputs = whole.tensor_split(count);
  const Tensor input_gradient = wants_gradient ? empty_like(whole) : Tensor();
  const auto input_gradients = wants_gradient ? input_gradient.tensor_split(count) : std::vector<Tensor>();
  const auto targets = target.to(stages.back().device, target.scalar_type()).tensor_split(count);
  for (PipelineStage& stage : stages) {
    stage.peak_micro_batches = 0;
    reset_peak_memory_stats(stage.device);
  }
  std::vector<detail::StageState> states(stages.size());
  AutoGradMode recording(true);
  Tensor sum;
  const auto forward_pass = [&](std::size_t s, std::int64_t i) {
    const scopes::Scope phase(scopes::Phase::kForward);
    const std::size_t part = static_cast<std::size_t>(i);
    detail::StageState& state = states[s];
    const Tensor x = s == 0 ? inputs[part].detach() : detail::Link::receive(detail::take(state.arriving, i));
    if (s > 0 || wants_gradient) x.set_requires_grad(true);
    Tensor output = parts_->run(s, x);
    if (s + 1 < stages.size()) {
      states[s + 1].arriving[i] = parts_->onward[s].send(output.detach());
    } else {
      const double share = static_cast<double>(inputs[part].size(0)) / static_cast<double>(input.size(0));
      output = loss(output, targets[part]) * share;
      sum = sum.defined() ? sum + output.detach() : output.detach();
    }
    state.inputs[i] = x;
    state.outputs[i] = std::move(output);
    stages[s].peak_micro_batches =
        std::max(stages[s].peak_micro_batches, static_cast<std::int64_t>(state.outputs.size()));
  };
  const auto backward_pass = [&](std::size_t s, std::int64_t i) {
    const AutocastGuard outside(stages[s].device, {}, /*enabled=*/false);
    const Tensor x = detail::take(states[s].inputs, i), output = detail::take(states[s].outputs, i);
    const Tensor gradient = detail::Link::receive(detail::take(states[s].gradients, i));
    if (output.requires_grad()) output.backward(gradient);  // not where nothing of the first stage learns
    const auto of_input = [&] {
      return x.grad().defined() ? x.grad() : tenon::zeros_like(x);
    };  // it may not depend on x
    if (s > 0) {
      states[s - 1].gradients[i] = parts_->back[s - 1].send(of_input());
    } else if (wants_gradient) {
      Tensor(input_gradients[static_cast<std::size_t>(i)]).copy_(of_input());
    }
  };
  const auto stage_count = static_cast<std::int64_t>(stages.size());
  for (const PipelinePass& pass : pipeline_passes(parts_->options.schedule(), stage_count, count)) {
    const auto stage = static_cast<std::size_t>(pass.stage);
    pass.backward ? backward_pass(stage, pass.micro_batch) : forward_pass(stage, pass.micro_batch);
  }
  if (wants_gradient) input.backward(input_gradient.to(input.device(), input.scalar_type()));
  for (PipelineStage& stage : stages)
    stage.peak_allocated_bytes = static_cast<std::int64_t>(max_memory_allocated(stage.device));
  return sum;
}

}  // namespace tenon::nn::parallel
