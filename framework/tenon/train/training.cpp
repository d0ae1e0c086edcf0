// Steps and tests of a training run.
#include <tenon/train/training.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/autograd/statistics_updates.h>
#include <tenon/core/scope/scope.h>
#include <tenon/core/seconds_since.h>
#include <tenon/core/text/counted.h>
#include <tenon/nn/lora.h>
#include <tenon/nn/quantization/quantize.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/plugins/sha256.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/model_on_device.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/quantized_inference.h>
#include <tenon/train/resume/saved_figures.h>
#include <tenon/train/resume/saved_run.h>
#include <tenon/train/schedules.h>

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <utility>

namespace tenon::train {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Training::Training(const ExperimentConfig& config, ProgressSink& progress, TrainingLimits limits, RunState state)
    : config_(config),
      options_(config.section("train")),
      techniques_(techniques_of(config)),
      progress_(progress),
      limits_(limits),
      state_(std::move(state)),
      ranks_(config, state_.ranks),
      device_(device_state(config.device)),
      computes_(device_.driver().properties().computes),
      checkpoint_(techniques_.checkpointed_blocks, policy_of(techniques_.checkpoint_keep, met_)),
      virtual_steps_(config.devices) {}

ExperimentResult Training::run() {
  try {
    return run_to_its_end();
  } catch (const std::exception& error) {
    ranks_.abort(error);  // before anything that is on its way is waited for
    tell_what_there_is();
    throw;
  }
}

/// Files of one name on the disks of several machines need not be the same.
std::string Training::what_this_rank_sees() const {
  const auto of = [](const Batches& batches, std::string_view what) {
    return fmt::format("{} {} (checksum {:08x})", batches.size(), what, batches.checksum());
  };
  std::string data = of(*data_.train, "examples") + ", " + of(*data_.test, "test examples");
  const std::string& file = options_.text("resume");
  if (file.empty() && !state_.go_on) return data;
  constexpr std::size_t kDigits = 8;
  return fmt::format("{}, {} steps done (saved state {})", data, steps_done(),
                     sha256_of_file(state_.go_on ? state_.file.string() : config_.resolve(file)).substr(0, kDigits));
}

/// Of a run that fails: its last words, which must not take the place of the reason.
void Training::tell_what_there_is() {
  try {
    merge_peaks(result_.memory, device_.allocator().stats());
    progress_.broken_off(so_far());
  } catch (const std::exception&) {  // no memory for it
  }
}

ExperimentResult Training::run_to_its_end() {
  start_ = Clock::now();
  attribute();
  ranks_.together([this] {
    prepare();
    check_sizes();
    resume();
  });
  if (ranks_.are_many()) ranks_.compare(what_this_rank_sees());
  ranks_.begin(*model_.module);  // hooks are on the parameters that a resumed run has
  ranks_.shard(*model_.module, *optimizer_, config_.device);
  if (ranks_.divides_gradients() || ranks_.tensor_parallel())
    precision_->agree_by([this](bool found) { return ranks_.any(found); });
  if (ranks_.divides_gradients() || ranks_.tensor_parallel()) {
    // The model was made whole on each rank: what counts is what it has from now on.
    device_.allocator().trim(0);
    device_.allocator().reset_peak_stats();
  }
  make_step();
  result_.memory = device_.allocator().stats();
  phases_.end(RunPhase::kSetup, result_.memory, result_.peak);
  progress_.beginning();
  const auto is_untested = [&](int epoch) { return steps_done() > (epoch - 1) * steps_per_epoch_; };
  for (int epoch = epoch_; epoch <= epochs_ && (steps_done() < last_step_ || is_untested(epoch)); ++epoch) {
    result_.interrupted = !run_epoch(epoch);
    if (result_.interrupted || (settling_ && (settling_->knows_epochs() || settling_->has_given_up()))) break;
  }
  result_.has_settled = !settling_ || !settling_->has_given_up();
  merge_peaks(result_.memory, device_.allocator().stats());
  report_attribution();
  if (result_.interrupted) {
    keep_state();
  } else {
    save();
    compare_with_integers();
  }
  ranks_.after_step(/*ends=*/true, result_.memory, result_.ranks);
  ranks_.note_communication(result_.figures);
  return so_far();
}

/// The whole run up to now.
ExperimentResult Training::so_far() const {
  ExperimentResult result = result_;
  result.warmup_steps = std::min(result.warmup_steps, std::max<std::int64_t>(result.steps, 1));
  result.test_accuracy = result.epochs.empty() ? 0 : result.epochs.back().test_accuracy;
  result.seconds = seconds_since(start_);
  if (options_.boolean("checkpoint"))
    result.figures.emplace_back(kCheckpointedBlocks, static_cast<double>(checkpoint_.count()));
  virtual_steps_.note(result);
  for (std::size_t i = 1; i < std::min(result.devices.size(), device_attributions_.size()); ++i)
    result.devices[i].attribution = device_attributions_[i];
  if (pipeline_) {
    pipeline_->note(result.devices);
    result.figures.emplace_back("pipeline_bubble", pipeline_->bubble());
  }
  if (precision_ && precision_->scaler().is_enabled())
    result.figures.emplace_back("loss_scale", precision_->scaler().get_scale());
  return joined(earlier_, std::move(result));
}

void Training::prepare() {
  report("reading data", 0, 0);
  progress_.entering("reading the data");
  const Precision precision = precision_named(options_.text("precision"));
  dtype_.emplace(precision.parameters);
  if (const std::int64_t threads = options_.integer("threads"); threads > 0)
    device_.driver().set_threads(static_cast<int>(threads));
  else
    share_threads();
  try {
    precision_.emplace(precision, config_.device);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    throw config_.error("train.precision", error.what());
  }
  if (!limits_.skips) precision_->never_skip();
  data_ = open_data(config_, precision.parameters);

  progress_.entering("making the model");
  const ModelRequest request = {.options = config_.section("model"),
                                .data = data_.shape,
                                .inplace_activations = options_.boolean("inplace_activations"),
                                .mixed_precision = precision.autocast.has_value(),
                                .lora_rank = options_.integer("lora_rank"),
                                .lora_layers = options_.text("lora_layers"),
                                .lora_integers = options_.text("lora_weights") != "float",
                                .element_bytes = static_cast<std::int64_t>(size_of(precision.parameters)),
                                .checkpoint = checkpoint_,
                                .tensor_parallel = ranks_.tensor_parallel()};
  model_ = make_model_on_device(config_, request, /*stays_on_host=*/ranks_.divides_gradients());
  if (is_pipeline(config_))
    pipeline_.emplace(config_, model_);
  else if (config_.devices.size() > 1)
    parallel_.emplace(config_, request, model_);
  result_.parameters = nn::quantization::parameters_of(*model_.module);
  if (const auto& divided = ranks_.tensor_parallel())
    for (const TensorPart& part : divided->parts())
      result_.parameters += part.parameter.numel() * (divided->size() - 1);
  result_.parameter_sizes = parameter_sizes(*model_.module, model_.stages, config_.devices);
  std::vector<Tensor> trained = nn::trainable_parameters(*model_.module);
  if (techniques_.master_weights) trained = masters_.emplace(std::move(trained)).parameters();
  optimizer_ = make_optimizer(options_, std::move(trained));

  result_.examples = data_.train->size();
  batch_size_ = options_.integer("batch_size");
  epochs_ = static_cast<int>(options_.integer("epochs"));
  steps_per_epoch_ = data_.train->size() / batch_size_;  // what is left over comes up in another epoch's order
  planned_steps_ = steps_per_epoch_ * epochs_;
  if (const std::int64_t most = options_.integer("max_steps"); most > 0) {
    if (most > planned_steps_)
      progress_.note(fmt::format("train.max_steps={} is more than the {} of {}: raise train.epochs", most,
                                 counted(planned_steps_, "step"), counted(epochs_, "epoch")));
    planned_steps_ = std::min(planned_steps_, most);
  }
  schedule_ = make_schedule(options_, *optimizer_, planned_steps_);
  last_step_ = planned_steps_;
  if (const std::int64_t stop = options_.integer("stop_at"); stop > 0) last_step_ = std::min(last_step_, stop);
  if (limits_.steps > 0) last_step_ = std::min(last_step_, limits_.steps);
  result_.planned_steps = last_step_;
  result_.warmup_steps = std::min(options_.integer("warmup_steps"), last_step_);
  if (limits_.until_settled) settling_.emplace(config_.devices, computes_);
  if (techniques_.checkpoint_budget > 0) choose_checkpoints();
  note_theory();
}

/// Ranks of one machine would each take all of its cores.
void Training::share_threads() {
  const int all = device_.driver().threads(), own = ranks_.threads_of_each(all);
  if (own == all) return;
  device_.driver().set_threads(own);
  progress_.note(fmt::format("train.threads=0: each rank on this machine has {} of its {} threads", own, all));
}

void Training::make_step() {
  step_.emplace(StepParts{.options = options_,
                          .techniques = techniques_,
                          .model = model_,
                          .data = *data_.train,
                          .optimizer = *optimizer_,
                          .precision = *precision_,
                          .ranks = ranks_,
                          .masters = masters_ ? &*masters_ : nullptr,
                          .batch_size = batch_size_,
                          .parallel = parallel_ ? &*parallel_ : nullptr,
                          .pipeline = pipeline_ ? &*pipeline_ : nullptr,
                          .computes = computes_,
                          .phase_ended = [this](RunPhase phase) {
                            check_blocks();
                            phases_.end(phase, device_.allocator().stats(), result_.peak);
                            check_attribution(phase_name(phase));
                          }});
}

void Training::check_blocks() {
  if (std::exchange(is_reach_checked_, true) || checkpoint_.count() == 0) return;
  check_reach(config_, checkpoint_.blocks(), *met_);
}

void Training::check_sizes() const {
  if (batch_size_ > data_.train->size())
    throw config_.error("train.batch_size",
                        fmt::format("{} is more than the {} training examples", batch_size_, data_.train->size()));
  if (options_.text("quantize") != "none" && options_.text("precision") != "float32")
    throw config_.error("train.quantize", "integers are made of float32: set train.precision to float32");
  try {
    check_quantizable(*model_.module, options_.text("quantize"));
  } catch (const Error& error) {
    throw config_.error("train.quantize", error.what());
  }
  if (batch_size_ < ranks_.batch_parts())
    throw config_.error("train.batch_size", fmt::format("{} is less than an example for each of {} ranks: raise it, or "
                                                        "start fewer ranks",
                                                        batch_size_, ranks_.batch_parts()));
  if (const std::int64_t parts = options_.integer("micro_batches"); parts * ranks_.batch_parts() > batch_size_) {
    throw config_.error("train.micro_batches", ranks_.batch_parts() > 1
                                                   ? fmt::format("{} parts on each of {} ranks, of a batch of {}",
                                                                 parts, ranks_.batch_parts(), batch_size_)
                                                   : fmt::format("{} parts of a batch of {}", parts, batch_size_));
  }
}

void Training::compare_with_integers() {
  const std::string& scheme = options_.text("quantize");
  if (scheme == "none" || !limits_.is_whole() || !computes_) return;
  progress_.entering("quantization");
  step_.reset();
  optimizer_.reset();
  const auto figures = compare_quantized({.model = model_,
                                          .data = data_,
                                          .device = device_,
                                          .scheme = scheme,
                                          .batches = options_.integer("quantize_batches"),
                                          .batch_size = batch_size_,
                                          .test_batch_size = options_.integer("test_batch_size")});
  result_.figures.insert(result_.figures.end(), figures.begin(), figures.end());
  progress_.note(sentence_on(scheme, figures) + without_kernels(device_, scheme));
}

bool Training::run_epoch(int epoch) {
  const auto start = Clock::now();
  model_.module->train();
  data_.train->begin(
      static_cast<std::uint64_t>(options_.integer("seed")) * 1'000'003 + static_cast<std::uint64_t>(epoch),
      options_.boolean("shuffle"));
  if (settling_) settling_->epoch_begins();
  EpochResult figures{.epoch = epoch};
  std::int64_t done = steps_done() - (epoch - 1) * steps_per_epoch_;
  if (done == 0) epoch_loss_sum_ = epoch_seconds_ = 0;
  const double seconds_before = epoch_seconds_;
  const std::int64_t every = options_.integer("save_every");
  while (done < steps_per_epoch_ && steps_done() < last_step_) {
    const double loss = timed_step(done * batch_size_);
    ++done;
    epoch_loss_sum_ += loss;
    epoch_seconds_ = seconds_before + seconds_since(start);
    report("train", epoch, loss);
    if (ranks_.after_step(progress_.is_stopping(), result_.memory, result_.ranks)) return false;
    if (every > 0 && steps_done() % every == 0) keep_state();
    if (settling_ && settling_->has_settled_after_step()) {
      first_step_ += steps_per_epoch_ - done;  // the others are as good as done
      break;
    }
  }
  figures.train_loss = epoch_loss_sum_ / static_cast<double>(std::max<std::int64_t>(done, 1));
  figures.seconds = epoch_seconds_;
  if (limits_.tests && !test(epoch, figures)) return false;
  report("tested", epoch, figures.train_loss);
  progress_.note(computes_ ? fmt::format("epoch {}/{}: loss {}, test loss {}, test accuracy {:.2f} %, {:.1f} s", epoch,
                                         epochs_, loss_text(figures.train_loss), loss_text(figures.test_loss),
                                         100 * figures.test_accuracy, figures.seconds)
                           : fmt::format("epoch {}/{}: {} computes nothing, so there is no loss, {:.1f} s", epoch,
                                         epochs_, device_.device().str(), figures.seconds));
  result_.epochs.push_back(figures);
  progress_.figures(result_);
  if (done == steps_per_epoch_) epoch_ = epoch + 1;
  return true;
}

/// With its time, its peaks and its device calls.
double Training::timed_step(std::int64_t first) {
  AllocatorStack& allocator = device_.allocator();
  check_attribution("before a step");
  progress_.step_begins();
  allocator.mark(fmt::format("step {}", steps_done() + 1));
  if (scopes::is_listening()) scopes::tell_marked(fmt::format("step {}", steps_done() + 1));
  progress_.entering(fmt::format("step {} of {}", steps_done() + 1, last_step_));
  allocator.reset_peak_stats();
  const MemoryStats before = allocator.stats();
  const std::int64_t calls = before.device_calls();
  phases_.begin(before);
  const auto start = Clock::now();
  const double loss = virtual_steps_.around([&] { return step_or_retry(first); });
  result_.step_ms.push_back(1000 * seconds_since(start));
  const MemoryStats after = allocator.stats();
  phases_.end(RunPhase::kUpdate, after, result_.peak);
  check_attribution("step");
  if (result_.steps >= result_.warmup_steps) result_.device_calls_after_warmup += after.device_calls() - calls;
  ++result_.steps;
  if (!std::isfinite(loss) && computes_ && (result_.losses.empty() || std::isfinite(result_.losses.back())))
    progress_.note(fmt::format("step {}: the loss is not finite", steps_done()));
  result_.losses.push_back(loss);
  result_.timeline.push_back(sample_after(steps_done(), after));
  merge_peaks(result_.memory, after);
  progress_.figures(result_);
  return loss;
}

/// Out of memory in the middle of a step: everything of the step is given back by then, so is the cache, and the step
/// is tried again from its beginning, unless it had begun to change parameters. More than once, since an allocator may
/// do otherwise what has failed twice.
double Training::step_or_retry(std::int64_t first) {
  for (; scheduled_ < steps_done(); ++scheduled_) schedule_->step();  // also those that a resumed run begins behind
  const RandomStates random = random_states();
  const std::int64_t updates = statistics_updates();
  const struct UpdatesAll {
    ~UpdatesAll() { leave_out_statistics_updates(0); }
  } afterwards;
  for (int tries = 1;; ++tries) {
    try {
      const double loss = step_->run(first);
      if (tries > 1) ++result_.oom_recoveries;
      return loss;
    } catch (const OutOfMemory& error) {
      if (tries == kMostTries) throw;
      if (step_->is_updating()) throw;  // parameters may have changed already
      if (ranks_.are_many()) throw;     // and gradients of this step are with the other ranks already
      model_.module->zero_grad(/*set_to_none=*/true);
      if (parallel_) parallel_->forget_gradients();
      std::size_t given_back = 0;
      for (const Device& device : config_.devices) given_back += device_state(device).allocator().trim(0);
      if (given_back == 0) throw;  // nothing was cached: a second try would end the same
      progress_.note(fmt::format("step {}: out of memory, cached memory given back, try {} of {}: {}", steps_done() + 1,
                                 tries + 1, kMostTries, error.what()));
    }
    set_random_states(random);
    leave_out_statistics_updates(statistics_updates() - updates);
  }
}

void Training::report(const char* phase, int epoch, double loss) {
  Progress now = {.step = steps_done(), .steps = last_step_, .epoch = epoch, .epochs = epochs_};
  if (computes_ && now.step > 0) now.loss = loss;
  if (std::string_view(phase) == "train") {
    now.learning_rate = optimizer_->param_groups().front().options().get_lr();
    now.step_ms = result_.step_ms.back();
    now.examples = batch_size_;
  }
  now.phase = phase;
  progress_.progress(now);
}

}  // namespace tenon::train
