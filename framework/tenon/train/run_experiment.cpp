// A training run: data and model onto the device, steps, tests, figures.
#include <tenon/train/run_experiment.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/clip_grad.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/batches.h>
#include <tenon/train/model.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/peaks.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// New tensors of this scope have the experiment's dtype.
class DefaultDtype {
 public:
  explicit DefaultDtype(Dtype dtype) : previous_(get_default_dtype()) { set_default_dtype(dtype); }
  ~DefaultDtype() { set_default_dtype(previous_); }
  DefaultDtype(const DefaultDtype&) = delete;
  DefaultDtype& operator=(const DefaultDtype&) = delete;

 private:
  TypeMeta previous_;
};

class Training {
 public:
  Training(const ExperimentConfig& config, ProgressSink& progress)
      : config_(config), options_(config.section("train")), progress_(progress), device_(device_state(config.device)) {}

  ExperimentResult run() {
    const auto start = Clock::now();
    prepare();
    batch_size_ = options_.integer("batch_size");
    if (batch_size_ > train_->size()) {
      throw config_.error("train.batch_size",
                          fmt::format("{} is more than the {} training examples", batch_size_, train_->size()));
    }
    if (options_.integer("micro_batches") > batch_size_) {
      throw config_.error("train.micro_batches",
                          fmt::format("{} parts of a batch of {}", options_.integer("micro_batches"), batch_size_));
    }
    epochs_ = static_cast<int>(options_.integer("epochs"));
    steps_per_epoch_ = train_->size() / batch_size_;  // what is left over comes up in another epoch's order
    steps_ = steps_per_epoch_ * epochs_;
    if (const std::int64_t most = options_.integer("max_steps"); most > 0) steps_ = std::min(steps_, most);
    result_.warmup_steps = std::min(options_.integer("warmup_steps"), steps_);
    result_.memory = device_.allocator().stats();

    for (int epoch = 1; epoch <= epochs_ && result_.steps < steps_; ++epoch) run_epoch(epoch);

    train::merge_peaks(result_.memory, device_.allocator().stats());
    result_.test_accuracy = result_.epochs.empty() ? 0 : result_.epochs.back().test_accuracy;
    result_.seconds = seconds_since(start);
    return std::move(result_);
  }

 private:
  void prepare() {
    report("reading data", 0, 0, 0);
    const Options& data = config_.section("data");
    const Dtype dtype = options_.text("precision") == "float64" ? kFloat64 : kFloat32;
    dtype_.emplace(dtype);
    if (const std::int64_t threads = options_.integer("threads"); threads > 0) {
      device_.driver().set_threads(static_cast<int>(threads));
    }
    const std::int64_t image_size = config_.section("model").integer("image_size");
    const std::filesystem::path folder = data.text("path").empty() ? std::filesystem::path(data::kFashionMnistFolder)
                                                                   : config_.resolve(data.text("path"));
    const auto load = [&](data::Split split, const char* limit, train::DataShape& shape) {
      const data::ImageSet set = data::read_mnist(folder, split);
      shape.height = image_size > 0 ? image_size : set.height;
      shape.width = image_size > 0 ? image_size : set.width;
      shape.classes = set.classes;
      return train::make_image_batches(set, data.integer(limit), image_size, dtype, config_.device);
    };
    train::DataShape shape;
    train_ = load(data::Split::kTrain, "limit", shape);
    test_ = load(data::Split::kTest, "test_limit", shape);

    // Parameters are drawn on the host, so that every device starts from the same ones.
    manual_seed(static_cast<std::uint64_t>(options_.integer("seed")));
    model_ = train::make_model({.options = config_.section("model"),
                                .data = shape,
                                .inplace_activations = options_.boolean("inplace_activations"),
                                .checkpoint = options_.boolean("checkpoint")});
    if (!config_.device.is_cpu()) {
      PurposeGuard purpose(Purpose::kParameter);
      model_.module->to(config_.device);
    }
    for (const Tensor& parameter : model_.module->parameters()) result_.parameters += parameter.numel();
    optimizer_ = train::make_optimizer(options_, model_.module->parameters());
  }

  void run_epoch(int epoch) {
    const auto start = Clock::now();
    model_.module->train();
    train_->begin(static_cast<std::uint64_t>(options_.integer("seed")) * 1'000'003 + static_cast<std::uint64_t>(epoch),
                  options_.boolean("shuffle"));
    EpochResult figures{.epoch = epoch};
    std::int64_t done = 0;
    for (; done < steps_per_epoch_ && result_.steps < steps_; ++done) {
      const double loss = timed_step(done * batch_size_);
      figures.train_loss += loss;
      report("train", epoch, result_.steps, loss);
    }
    figures.train_loss /= static_cast<double>(std::max<std::int64_t>(done, 1));
    figures.seconds = seconds_since(start);
    test(epoch, figures);
    progress_.note(fmt::format("epoch {}/{}: loss {:.4f}, test loss {:.4f}, test accuracy {:.2f} %, {:.1f} s", epoch,
                               epochs_, figures.train_loss, figures.test_loss, 100 * figures.test_accuracy,
                               figures.seconds));
    result_.epochs.push_back(figures);
  }

  /// A step with its time, its peaks and its device calls.
  double timed_step(std::int64_t first) {
    AllocatorStack& allocator = device_.allocator();
    allocator.reset_peak_stats();
    const std::int64_t calls = allocator.stats().device_calls();
    const auto start = Clock::now();
    const double loss = step_or_retry(first);
    result_.step_ms.push_back(1000 * seconds_since(start));
    const MemoryStats after = allocator.stats();
    if (result_.steps >= result_.warmup_steps) result_.device_calls_after_warmup += after.device_calls() - calls;
    ++result_.steps;
    result_.losses.push_back(loss);
    result_.timeline.push_back({.step = result_.steps,
                                .requested_bytes = after.requested_bytes.current,
                                .allocated_bytes = after.allocated_bytes.current,
                                .reserved_bytes = after.reserved_bytes.current,
                                .peak_allocated_bytes = after.allocated_bytes.peak});
    train::merge_peaks(result_.memory, after);
    return loss;
  }

  /// Out of memory in the middle of a step: everything of the step is given back by then, so is the cache, and the step
  /// is tried once more from its beginning, unless it had begun to change parameters.
  double step_or_retry(std::int64_t first) {
    const RandomStates random = random_states();
    try {
      return compute(first);
    } catch (const OutOfMemory& error) {
      if (updating_) throw;  // parameters may have changed already
      optimizer_->zero_grad(/*set_to_none=*/true);
      if (device_.allocator().trim(0) == 0) throw;  // nothing was cached: a second try would end the same
      progress_.note(fmt::format("step {}: out of memory, cached memory given back, trying again: {}",
                                 result_.steps + 1, error.what()));
    }
    set_random_states(random);
    const double loss = compute(first);
    ++result_.oom_recoveries;
    return loss;
  }

  double compute(std::int64_t first) {
    const std::int64_t parts = options_.integer("micro_batches");
    double loss = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t begin = batch_size_ * part / parts, end = batch_size_ * (part + 1) / parts;
      const train::Batch batch = train_->get(first + begin, end - begin);
      Tensor value = loss_of(model_.forward(batch.input), batch.target);
      if (parts > 1) value = value * (static_cast<double>(end - begin) / static_cast<double>(batch_size_));
      value.backward();
      loss += value.item<double>();
    }
    if (const double norm = options_.real("clip_grad_norm"); norm > 0) {
      nn::utils::clip_grad_norm_(model_.module->parameters(), norm);
    }
    const double lr = train::scheduled_lr(options_, result_.steps, steps_);
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(lr);
    updating_ = true;
    optimizer_->step();
    updating_ = false;
    optimizer_->zero_grad(/*set_to_none=*/options_.text("zero_grad") == "none");
    return loss;
  }

  static Tensor loss_of(const Tensor& logits, const Tensor& target) {
    return tenon::cross_entropy_loss(logits, target);
  }

  void test(int epoch, EpochResult& figures) {
    model_.module->eval();
    AutoGradMode grad_mode(!options_.boolean("eval_no_grad"));
    test_->begin(0, /*shuffle=*/false);
    const std::int64_t size = test_->size(), at_once = options_.integer("test_batch_size");
    std::int64_t right = 0;
    double loss = 0;
    for (std::int64_t first = 0; first < size; first += at_once) {
      report("test", epoch, result_.steps, 0);
      const std::int64_t count = std::min(at_once, size - first);
      const train::Batch batch = test_->get(first, count);
      const Tensor logits = model_.forward(batch.input);
      loss += loss_of(logits, batch.target).item<double>() * static_cast<double>(count);
      right += logits.argmax(-1).eq(batch.target).sum().item<std::int64_t>();
    }
    figures.test_loss = loss / static_cast<double>(size);
    figures.test_accuracy = static_cast<double>(right) / static_cast<double>(size);
    train::merge_peaks(result_.memory, device_.allocator().stats());
  }

  void report(const char* phase, int epoch, std::int64_t step, double loss) {
    progress_.progress(
        {.step = step, .steps = steps_, .epoch = epoch, .epochs = epochs_, .loss = loss, .phase = phase});
  }

  const ExperimentConfig& config_;
  const Options& options_;
  ProgressSink& progress_;
  DeviceState& device_;
  std::optional<DefaultDtype> dtype_;
  std::unique_ptr<train::Batches> train_, test_;
  train::Model model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::int64_t batch_size_ = 1, steps_per_epoch_ = 0, steps_ = 0;
  int epochs_ = 0;
  bool updating_ = false;
  ExperimentResult result_;
};

}  // namespace

ExperimentResult run_experiment(const ExperimentConfig& config, ProgressSink& progress) {
  return Training(config, progress).run();
}

}  // namespace tenon
