// Requests in and out.
#include <tenon/autograd/grad_mode.h>
#include <tenon/core/scope/scope.h>
#include <tenon/core/seconds_since.h>
#include <tenon/core/text/counted.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/quantization/quantize.h>
#include <tenon/ops/ops.h>
#include <tenon/train/model_on_device.h>
#include <tenon/train/peaks.h>
#include <tenon/train/serve/schedule.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/mixed_precision.h>
#include <tenon/train/step/run_attribution.h>
#include <tenon/train/training.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>

namespace tenon::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSymbols = 256;  // of a model that is told no vocabulary

/// One that has arrived. What it was given so far is part of what it is computed from again, should it give up its
/// cache.
struct Active {
  std::size_t id = 0;
  std::vector<std::int64_t> symbols;  ///< the prompt and what came after it
  std::int64_t prompt = 0, wanted = 0;
  std::int64_t kept = 0;  ///< positions that are in its cache
  std::unique_ptr<KvCache> cache;

  std::int64_t length() const { return static_cast<std::int64_t>(symbols.size()); }
  bool is_finished() const { return length() - prompt == wanted; }
};

class Serving {
 public:
  Serving(const ExperimentConfig& config, ProgressSink& progress, std::int64_t most_steps)
      : options_(config.section("serve")),
        config_(config),
        progress_(progress),
        most_steps_(most_steps),
        device_(device_state(config.device)),
        computes_(device_.driver().properties().computes),
        kind_(cache_kind(options_.text("cache"))),
        kv_memory_(static_cast<std::int64_t>(options_.size("kv_memory"))) {}

  ExperimentResult run() {
    const auto start = Clock::now();
    prepare();
    NoGradGuard no_grad;
    result_.memory = device_.allocator().stats();
    phases_.end(RunPhase::kSetup, result_.memory, result_.peak);
    progress_.beginning();
    while (has_more() && (most_steps_ == 0 || result_.steps < most_steps_)) {
      if (progress_.is_stopping()) {
        result_.interrupted = true;
        break;
      }
      timed_step();
    }
    running_.clear();
    waiting_.clear();
    note_figures();
    merge_peaks(result_.memory, device_.allocator().stats());
    if (attribution_) result_.attribution = attribution_->report();
    result_.seconds = seconds_since(start);
    return std::move(result_);
  }

 private:
  void prepare() {
    progress_.entering("making the model");
    if (config_.section("report").boolean("attribution"))
      attribution_.emplace(
          device_, progress_,
          [this](memory::Attribution& attribution) {
            if (model_.module) name_owners(attribution, *model_.module, nullptr);
          },
          AttributionWants{.call_sites = config_.section("report").boolean("stacks"), .last_uses = true});
    const Options& train = config_.section("train");
    const Dtype dtype = precision_named(train.text("precision")).parameters;
    dtype_.emplace(dtype);
    if (const std::int64_t threads = train.integer("threads"); threads > 0)
      device_.driver().set_threads(static_cast<int>(threads));
    const Options model = with_preset(config_.section("model"));
    const std::int64_t vocabulary = model.integer("vocabulary") > 0 ? model.integer("vocabulary") : kSymbols;
    model_ = make_model_on_device(config_, {.options = config_.section("model"),
                                            .data = {.vocabulary = vocabulary, .context = model.integer("context")}});
    model_.module->eval();
    result_.parameters = nn::quantization::parameters_of(*model_.module);
    shape_ = model_.cache;
    shape_.positions = model.integer("context");
    shape_.page_positions = options_.integer("page");
    shape_.element_bytes = static_cast<std::int64_t>(size_of(dtype));
    if (kv_memory_ > 0 && reserved_bytes(kind_, shape_, shape_.positions) > kv_memory_)
      throw config_.error("serve.kv_memory",
                          fmt::format("{} bytes are less than the {} of one request of model.context = {} positions",
                                      kv_memory_, reserved_bytes(kind_, shape_, shape_.positions), shape_.positions));
    requests_ = draw_requests(options_, vocabulary);
    result_.planned_steps = static_cast<std::int64_t>(requests_.back().arrival) + 1;
    result_.warmup_steps = 0;
    tokens_.resize(requests_.size());
  }

  bool has_more() const { return next_ < requests_.size() || !waiting_.empty() || !running_.empty(); }

  void timed_step() {
    AllocatorStack& allocator = device_.allocator();
    progress_.step_begins();
    allocator.mark(fmt::format("step {}", result_.steps + 1));
    if (scopes::is_listening()) scopes::tell_marked(fmt::format("step {}", result_.steps + 1));
    progress_.entering(
        fmt::format("step {}, {} of {} served", result_.steps + 1, served_, counted(requests_.size(), "request")));
    allocator.reset_peak_stats();
    const MemoryStats before = allocator.stats();
    phases_.begin(before);
    const std::int64_t served_before = served_;
    const auto start = Clock::now();
    arrive();
    admit();
    step();
    const MemoryStats after = allocator.stats();
    phases_.end(RunPhase::kForward, after, result_.peak);
    if (attribution_) attribution_->check("step");
    result_.step_ms.push_back(1000 * seconds_since(start));
    result_.losses.push_back(std::numeric_limits<double>::quiet_NaN());
    result_.device_calls_after_warmup += after.device_calls() - before.device_calls();
    ++result_.steps;
    result_.planned_steps = std::max(result_.planned_steps, result_.steps);
    result_.timeline.push_back(sample_after(result_.steps, after));
    merge_peaks(result_.memory, after);
    progress_.figures(result_);
    Progress now = {.step = result_.steps, .steps = result_.steps};
    if (has_more() && served_ > 0)  // as fast as until now
      now.steps = result_.steps * static_cast<std::int64_t>(requests_.size()) / served_;
    if (has_more()) now.steps = std::max({now.steps, result_.planned_steps, result_.steps + 1});
    now.step_ms = result_.step_ms.back();
    now.examples = served_ - served_before;
    now.phase = "serve";
    progress_.progress(now);
    now_ += 1;
  }

  /// Time jumps where there is nobody to serve.
  void arrive() {
    if (running_.empty() && waiting_.empty() && next_ < requests_.size())
      now_ = std::max(now_, requests_[next_].arrival);
    for (; next_ < requests_.size() && requests_[next_].arrival <= now_; ++next_) {
      const ServedRequest& request = requests_[next_];
      waiting_.push_back({.id = next_,
                          .symbols = request.prompt,
                          .prompt = static_cast<std::int64_t>(request.prompt.size()),
                          .wanted = request.output_symbols});
    }
  }

  std::int64_t reserved(std::int64_t length) const { return reserved_bytes(kind_, shape_, length); }
  std::int64_t reserved_next() const {
    std::int64_t bytes = 0;
    for (const Active& each : running_) bytes += reserved(each.length());
    return bytes;
  }

  /// In the order of arrival; one who does not fit lets nobody past, and after one had to give up nobody is admitted
  /// until another leaves.
  void admit() {
    const std::int64_t most = options_.integer("most_at_once");
    if (running_.empty()) is_full_ = false;
    const std::size_t most_now = result_.oom_recoveries > 0 ? running_.size() + 1 : requests_.size();
    while (!is_full_ && !waiting_.empty() && running_.size() < most_now &&
           (most == 0 || static_cast<std::int64_t>(running_.size()) < most)) {
      if (kv_memory_ > 0 && reserved_next() + reserved(waiting_.front().length()) > kv_memory_) break;
      running_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      running_.back().cache = make_cache(kind_, shape_);
    }
    while (kv_memory_ > 0 && reserved_next() > kv_memory_) give_up();
  }

  /// The one that came last: others have waited longer and been given more.
  void give_up() {
    Active last = std::move(running_.back());
    running_.pop_back();
    last.cache.reset();
    last.kept = 0;
    waiting_.push_front(std::move(last));
    ++given_up_;
    is_full_ = true;
  }

  /// Every running request gets a symbol. Out of memory costs the last one its place, until the others fit.
  void step() {
    while (true) {
      try {
        return compute();
      } catch (const OutOfMemory&) {
        for (Active& each : running_) each.cache->rewind(each.kept);
        if (running_.size() == 1) throw;
        give_up();
        device_.allocator().trim(0);
        ++result_.oom_recoveries;
      }
    }
  }

  void compute() {
    const PackedSymbols packed = pack();
    const Tensor next = model_.serve(packed).argmax(-1);
    std::vector<std::int64_t> symbols(running_.size(), 0);  // where a device computes nothing, all are the first one
    if (computes_) {
      const Tensor host = next.cpu();
      for (std::size_t i = 0; i < symbols.size(); ++i)
        symbols[i] = host[static_cast<std::int64_t>(i)].item<std::int64_t>();
    }
    most_at_once_ = std::max(most_at_once_, running_.size());
    sum_at_once_ += running_.size();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      running_[i].kept = running_[i].length();
      running_[i].symbols.push_back(symbols[i]);
    }
    count_waste();
    std::erase_if(running_, [this](Active& each) {
      if (!each.is_finished()) return false;
      tokens_[each.id] = {each.symbols.begin() + each.prompt, each.symbols.end()};
      generated_ += each.wanted;
      ++served_;
      is_full_ = false;
      return true;
    });
  }

  /// What each cache lacks: the whole prompt at first, the last symbol afterwards.
  PackedSymbols pack() const {
    std::vector<std::int64_t> symbols, positions, last;
    PackedSymbols packed;
    for (const Active& each : running_) {
      packed.spans.push_back({.cache = each.cache.get(),
                              .begin = static_cast<std::int64_t>(symbols.size()),
                              .count = each.length() - each.kept});
      for (std::int64_t at = each.kept; at < each.length(); ++at) {
        symbols.push_back(each.symbols[static_cast<std::size_t>(at)]);
        positions.push_back(at);
      }
      last.push_back(static_cast<std::int64_t>(symbols.size()) - 1);
    }
    PurposeGuard purpose(Purpose::kData);
    const auto upload = [&](std::vector<std::int64_t>& values) {
      const Tensor host =
          tenon::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, TensorOptions(kInt64));
      return config_.device.is_cpu() ? host.clone() : host.to(config_.device);
    };
    packed.symbols = upload(symbols);
    packed.positions = upload(positions);
    packed.last = upload(last);
    return packed;
  }

  void count_waste() {
    std::int64_t held = 0, used = 0;
    for (const Active& each : running_) {
      held += reserved(each.kept);
      used += each.kept * shape_.position_bytes();
    }
    if (held > kv_peak_) {
      kv_peak_ = held;
      kv_used_at_peak_ = used;
    }
    if (held > 0) waste_sum_ += 1 - static_cast<double>(used) / static_cast<double>(held);
  }

  void note_figures() {
    const auto figure = [&](const char* name, double value) { result_.figures.emplace_back(name, value); };
    const double steps = std::max<double>(1, static_cast<double>(result_.steps));
    figure("served_requests", static_cast<double>(served_));
    figure("generated_symbols", static_cast<double>(generated_));
    figure("most_at_once", static_cast<double>(most_at_once_));
    figure("mean_at_once", static_cast<double>(sum_at_once_) / steps);
    figure("given_up", static_cast<double>(given_up_));
    figure("kv_peak_bytes", static_cast<double>(kv_peak_));
    figure("kv_used_at_peak_bytes", static_cast<double>(kv_used_at_peak_));
    figure("kv_waste", waste_sum_ / steps);
    if (computes_) figure("tokens_hash", tokens_hash());
  }

  /// 52 bits of FNV-1a, which a double holds.
  double tokens_hash() const {
    std::uint64_t hash = 14695981039346656037ULL;
    const auto add = [&](std::int64_t value) {
      for (int byte = 0; byte < 8; ++byte) {
        hash ^= static_cast<std::uint64_t>(value) >> (8 * byte) & 0xff;
        hash *= 1099511628211ULL;
      }
    };
    for (const std::vector<std::int64_t>& request : tokens_) {
      for (const std::int64_t symbol : request) add(symbol);
      add(-1);
    }
    return static_cast<double>(hash >> 12);
  }

  const Options& options_;  ///< [serve]
  const ExperimentConfig& config_;
  ProgressSink& progress_;
  const std::int64_t most_steps_;
  DeviceState& device_;
  const bool computes_;
  const CacheKind kind_;
  const std::int64_t kv_memory_;
  std::optional<DefaultDtype> dtype_;
  Model model_;
  CacheShape shape_;
  std::vector<ServedRequest> requests_;
  std::size_t next_ = 0;  ///< the next to arrive
  double now_ = 0;        ///< in steps
  std::deque<Active> waiting_;
  std::vector<Active> running_;  ///< in the order of their admission
  bool is_full_ = false;         ///< one had to give up, and none has left since
  std::vector<std::vector<std::int64_t>> tokens_;
  std::int64_t served_ = 0, generated_ = 0, given_up_ = 0;
  std::size_t most_at_once_ = 0, sum_at_once_ = 0;
  std::int64_t kv_peak_ = 0, kv_used_at_peak_ = 0;
  double waste_sum_ = 0;
  PhaseWatch phases_;
  std::optional<RunAttribution> attribution_;  ///< with report.attribution
  ExperimentResult result_;
};

}  // namespace

bool serves(const ExperimentConfig& config) { return config.section("serve").integer("requests") > 0; }

void check_serving(const ExperimentConfig& config) {
  if (precision_named(config.section("train").text("precision")).autocast)
    throw config.error(
        "train.precision",
        "mixed precision keeps weights in float32 for updates, and serving has none: bfloat16 takes half");
  const Options& train = config.section("train");
  if (train.text("quantize") != "none" && !train.text("quantize").starts_with("weight_only"))
    throw config.error("train.quantize",
                       "requests are served with weights of integers or none: weight_only_int8 or "
                       "weight_only_int4");
  for (const char* file : {"resume", "save"})
    if (!train.text(file).empty())
      throw config.error(std::string("train.") + file, "serving draws its parameters and keeps none: leave it out");
  const Options &serve = config.section("serve"), model = with_preset(config.section("model"));
  const std::vector<std::string> able = serving_models();
  if (std::ranges::find(able, model.text("name")) == able.end())
    throw config.error("model.name", fmt::format("the model '{}' serves no requests; {} do", model.text("name"),
                                                 fmt::join(able, ", ")));
  for (const char* kind : {"prompt", "output"}) {
    const std::string least = fmt::format("{}_min", kind), most = fmt::format("{}_max", kind);
    if (serve.integer(least) > serve.integer(most))
      throw config.error("serve." + most, fmt::format("{} is less than serve.{} = {}", serve.integer(most), least,
                                                      serve.integer(least)));
  }
  const std::int64_t longest = serve.integer("prompt_max") + serve.integer("output_max");
  if (longest > model.integer("context"))
    throw config.error("model.context",
                       fmt::format("{} positions are too few for a prompt of {} and {} symbols after it",
                                   model.integer("context"), serve.integer("prompt_max"), serve.integer("output_max")));
}

ExperimentResult run_serving(const ExperimentConfig& config, ProgressSink& progress, std::int64_t most_steps) {
  check_serving(config);
  return Serving(config, progress, most_steps).run();
}

}  // namespace tenon::train
