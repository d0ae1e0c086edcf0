// Both kinds of checkpointing.
#include <tenon/autograd/autocast_cast.h>
#include <tenon/autograd/checkpoint.h>
#include <tenon/autograd/engine.h>
#include <tenon/autograd/graph_task.h>
#include <tenon/autograd/kept_results.h>
#include <tenon/autograd/modes.h>
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/variable.h>
#include <tenon/autograd/version_check.h>
#include <tenon/memory/purpose.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace tenon {

using namespace autograd;

namespace {

thread_local bool recomputing = false;

/// What a part found when it first ran, and is to find again.
struct Surroundings {
  explicit Surroundings(bool preserve_rng_state) : autocast(modes.autocast) {
    if (preserve_rng_state) random = random_states();
  }
  AutocastState autocast;
  std::optional<RandomStates> random;
};

/// The surroundings of a second run: gradients on, memory counted as activations, autocast and generators where they
/// were when the part first ran, and is_recomputing(). Puts all of it back.
class SecondRun {
 public:
  explicit SecondRun(const Surroundings& then)
      : autocast_(then.autocast), was_recomputing_(std::exchange(recomputing, true)) {
    if (!then.random) return;
    now_ = random_states();
    set_random_states(*then.random);
  }
  ~SecondRun() {
    if (now_) set_random_states(*now_);
    recomputing = was_recomputing_;
  }
  SecondRun(const SecondRun&) = delete;
  SecondRun& operator=(const SecondRun&) = delete;

 private:
  AutoGradMode grad_{true};
  PurposeGuard purpose_{Purpose::kActivation};
  autocast::AutocastAsThen autocast_;
  bool was_recomputing_;
  std::optional<RandomStates> now_;
};

variable_list detached(const variable_list& inputs) {
  variable_list result;
  for (const Tensor& input : inputs) {
    result.push_back(input.defined() ? input.detach() : Tensor());
    if (requires_grad(input)) result.back().set_requires_grad(true);
  }
  return result;
}

// --- reentrant ------------------------------------------------------------------------------------------------------

class CheckpointNode final : public Node {
 public:
  CheckpointNode(CheckpointFunction function, const variable_list& inputs, bool preserve)
      : function_(std::move(function)), then_(preserve) {
    for (const Tensor& input : inputs) {
      add_next_edge(gradient_edge(input));
      saved_.push_back(std::make_unique<SavedTensor>());
      saved_.back()->save(input);
    }
  }
  std::string name() const override { return "CheckpointFunctionBackward"; }
  void release_variables() override {
    for (auto& slot : saved_) slot->reset();
    function_ = nullptr;
  }
  void each_saved(const std::function<void(const SavedTensor&)>& show) const override {
    for (const auto& slot : saved_)
      if (slot->holds()) show(*slot);
  }
  GradList apply(GradList&& gradients) override {
    // Its own backward accumulates into whatever the part captured, asked for or not.
    if (GraphTask::runs_for_some_gradients()) {
      throw Error(
          "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
          "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
          ".backward() without passing the `inputs` argument.");
    }
    if (!function_) throw_backward_twice();
    variable_list inputs;
    for (auto& slot : saved_) inputs.push_back(slot->unpack(*this));
    const variable_list leaves = detached(inputs);
    variable_list outputs;
    {
      SecondRun second(then_);
      outputs = function_(leaves);
    }
    variable_list roots;
    variable_list root_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!requires_grad(outputs[i]) || !gradients[i].defined()) continue;
      roots.push_back(outputs[i]);
      root_gradients.push_back(gradients[i]);
    }
    if (roots.empty()) throw Error("none of output has requires_grad=True, this checkpoint() is not necessary");
    outputs.clear();
    autograd::backward(roots, root_gradients);
    GradList results;
    for (const Tensor& leaf : leaves) results.push_back(leaf.defined() ? leaf.grad() : Tensor());
    return results;
  }

 private:
  CheckpointFunction function_;
  std::vector<std::unique_ptr<SavedTensor>> saved_;
  Surroundings then_;
};

variable_list checkpoint_reentrant(CheckpointFunction function, const variable_list& inputs,
                                   const CheckpointOptions& options) {
  const bool wanted = GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(),
                                                            [](const Tensor& input) { return requires_grad(input); });
  IntrusivePtr<Node> node;
  if (wanted) node = IntrusivePtr<Node>(new CheckpointNode(function, inputs, options.preserve_rng_state));
  variable_list outputs;
  {
    NoGradGuard no_grad;
    outputs = function(inputs);
  }
  if (!node) return outputs;
  for (Tensor& output : outputs) {
    if (output.defined() && output.requires_grad()) output = output.detach();  // an input
    set_history(output, node);
  }
  return outputs;
}

// --- by saved-tensor hooks ------------------------------------------------------------------------------------------

/// What one checkpointed part needs to run again, and what came of it.
struct Frame {
  CheckpointFunction function;
  std::vector<VersionedTensor> inputs;  ///< as they were before the first run
  Surroundings then;
  std::size_t packed = 0;
  std::vector<Tensor> recomputed;  ///< by position of packing; emptied as they are used
  std::unique_ptr<KeptResults> kept;

  Frame(CheckpointFunction function, const variable_list& given, const CheckpointOptions& options)
      : function(std::move(function)), inputs(given.begin(), given.end()), then(options.preserve_rng_state) {
    if (options.keep) kept = std::make_unique<KeptResults>(options.keep);
  }

  /// What the part keeps, at the beginning of a run.
  KeptResults* begin(bool again) const {
    if (kept) kept->begin(again);
    return kept.get();
  }

  void recompute() {
    variable_list again_inputs;
    for (const VersionedTensor& input : inputs) {
      input.check("a checkpoint");
      again_inputs.push_back(input.tensor);
    }
    auto again = std::make_shared<std::vector<Tensor>>();
    {
      SavedTensorHooksGuard hooks({[again](const Tensor& tensor) -> std::any {
                                     again->push_back(tensor);
                                     return tensor;
                                   },
                                   [](const std::any& value) { return std::any_cast<Tensor>(value); }});
      SecondRun second(then);
      const KeptResultsGuard selects(begin(/*again=*/true));
      function(detached(again_inputs));
    }
    if (again->size() != packed) {
      throw Error("checkpoint: the recomputation saved " + std::to_string(again->size()) + " tensors, the first run " +
                  std::to_string(packed) + "; the function must do the same both times");
    }
    recomputed = std::move(*again);
  }
};

variable_list checkpoint_lazy(CheckpointFunction function, const variable_list& inputs,
                              const CheckpointOptions& options) {
  if (!GradMode::is_enabled()) return function(inputs);
  const auto frame = std::make_shared<Frame>(function, inputs, options);
  SavedTensorHooksGuard hooks({[frame](const Tensor&) -> std::any { return frame->packed++; },
                               [frame](const std::any& value) {
                                 const auto at = std::any_cast<std::size_t>(value);
                                 if (at >= frame->recomputed.size() || !frame->recomputed[at].defined())
                                   frame->recompute();
                                 return std::exchange(frame->recomputed[at], Tensor());
                               }});
  const KeptResultsGuard selects(frame->begin(/*again=*/false));
  return function(inputs);
}

}  // namespace

bool is_recomputing() noexcept { return recomputing; }

variable_list checkpoint(CheckpointFunction function, const variable_list& inputs, CheckpointOptions options) {
  if (options.use_reentrant && options.keep)
    throw Error("checkpoint: use_reentrant keeps the inputs alone: leave it out for a policy that keeps results");
  return options.use_reentrant ? checkpoint_reentrant(std::move(function), inputs, options)
                               : checkpoint_lazy(std::move(function), inputs, options);
}

Tensor checkpoint_sequential(const std::vector<std::function<Tensor(Tensor)>>& functions, std::size_t segments,
                             const Tensor& input, CheckpointOptions options) {
  if (segments == 0 || functions.empty())
    throw Error("checkpoint_sequential needs at least one function and one segment");
  const std::size_t length = std::max<std::size_t>(1, functions.size() / segments);
  Tensor value = input;
  std::size_t start = 0;
  const auto run = [&functions](std::size_t from, std::size_t to) {
    return [&functions, from, to](Tensor x) {
      for (std::size_t i = from; i < to; ++i) x = functions[i](x);
      return x;
    };
  };
  for (std::size_t segment = 0; segment + 1 < segments && start + length < functions.size();
       ++segment, start += length) {
    std::vector<std::function<Tensor(Tensor)>> part(functions.begin() + static_cast<std::ptrdiff_t>(start),
                                                    functions.begin() + static_cast<std::ptrdiff_t>(start + length));
    value = checkpoint(
        [part = std::move(part)](Tensor x) {
          for (const auto& function : part) x = function(x);
          return x;
        },
        value, options);
  }
  return run(start, functions.size())(value);
}

}  // namespace tenon
