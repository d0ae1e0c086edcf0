// Starting, stepping and stopping; what is recorded is the recorder's matter.
#include <tenon/profiler/profiler.h>

#include <tenon/core/error.h>
#include <tenon/profiler/exports.h>
#include <tenon/profiler/recorder.h>

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace tenon::profiler {

Schedule schedule(const ScheduleOptions& options) {
  const auto check = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least) throw Error(fmt::format("schedule: {} is {}, it must be at least {}", name, value, least));
  };
  check("wait", options.wait, 0);
  check("warmup", options.warmup, 0);
  check("active", options.active, 1);
  check("repeat", options.repeat, 0);
  check("skip_first", options.skip_first, 0);
  return [options](std::int64_t step) {
    if (step < options.skip_first) return ProfilerAction::kNone;
    step -= options.skip_first;
    const std::int64_t cycle = options.wait + options.warmup + options.active;
    if (options.repeat > 0 && step / cycle >= options.repeat) return ProfilerAction::kNone;
    const std::int64_t place = step % cycle;
    if (place < options.wait) return ProfilerAction::kNone;
    if (place < options.wait + options.warmup) return ProfilerAction::kWarmup;
    return place == cycle - 1 ? ProfilerAction::kRecordAndSave : ProfilerAction::kRecord;
  };
}

class Profile::Impl {
 public:
  Impl(Profile& owner, ProfileOptions options) : owner_(owner), options_(std::move(options)) {}

  void start() {
    if (is_started_) throw Error("the profiler has started already");
    is_started_ = has_started_ = true;
    is_paused_ = false;
    step_ = options_.first_step;
    action_ = action_of(step_);
    if (action_ != ProfilerAction::kNone) begin();
    label_step();
  }

  void stop() {
    if (!is_started_) throw Error("the profiler has not started: call start() before stop()");
    is_started_ = false;
    end(/*tells=*/action_ != ProfilerAction::kWarmup);
  }

  void abandon() {
    is_started_ = false;
    end(/*tells=*/false);
  }

  void step() {
    if (!is_started_) throw Error("the profiler has not started: call start() before step()");
    const ProfilerAction was = action_;
    action_ = action_of(++step_);
    label_.reset();
    // A recording ends with its last step; where the next cycle has no wait, the next one begins at once.
    if (was == ProfilerAction::kRecordAndSave || (was != ProfilerAction::kNone && action_ == ProfilerAction::kNone))
      end(/*tells=*/was != ProfilerAction::kWarmup);
    const bool is_warm = was == ProfilerAction::kWarmup && action_ != ProfilerAction::kWarmup && recorder_;
    if (is_warm) recorder_.reset();  // thrown away: what is recorded begins afresh
    if (action_ != ProfilerAction::kNone && !recorder_) begin();
    label_step();
  }

  void pause() {
    if (!is_started_) throw Error("the profiler has not started: call start() before pause()");
    is_paused_ = true;
    label_.reset();
    if (recorder_) recorder_->pause();
  }

  void resume() {
    if (!is_started_) throw Error("the profiler has not started: call start() before resume()");
    if (!std::exchange(is_paused_, false)) return;
    if (recorder_) recorder_->resume();
    label_step();
  }

  std::int64_t step_number() const { return step_; }

  const Recording& recording() const {
    if (recorder_ && is_started_)
      throw Error("the profiler is recording: call stop(), or read its results in on_trace_ready");
    return recording_;
  }

  /// The same for those who have to have one.
  const Recording& recorded(const char* what) const {
    if (!has_started_)
      throw Error(fmt::format("{}: nothing was recorded: call start() and stop() of the profiler before", what));
    if (!has_recorded_ && !recorder_)
      throw Error(fmt::format(
          "{}: nothing was recorded: the schedule had not come to a step that it records by step {}", what, step_));
    return recording();
  }

 private:
  ProfilerAction action_of(std::int64_t step) const {
    return options_.schedule ? options_.schedule(step) : ProfilerAction::kRecord;
  }
  void begin() {
    recorder_ = std::make_unique<Recorder>(RecorderOptions{.device = options_.device,
                                                           .shapes = options_.record_shapes,
                                                           .memory = options_.profile_memory,
                                                           .stacks = options_.with_stack,
                                                           .flops = options_.with_flops,
                                                           .modules = options_.with_modules});
    if (is_paused_) recorder_->pause();
  }
  /// As PyTorch's, where there is a schedule.
  void label_step() {
    if (options_.schedule && recorder_ && !is_paused_) label_.emplace(fmt::format("ProfilerStep#{}", step_));
  }
  void end(bool tells) {
    label_.reset();
    if (!recorder_) return;
    recording_ = recorder_->finish();
    recorder_.reset();
    has_recorded_ = true;
    if (tells && options_.on_trace_ready) options_.on_trace_ready(owner_);
  }

  Profile& owner_;
  const ProfileOptions options_;
  bool is_started_ = false, is_paused_ = false, has_started_ = false, has_recorded_ = false;
  std::int64_t step_ = 0;
  ProfilerAction action_ = ProfilerAction::kNone;
  std::unique_ptr<Recorder> recorder_;
  std::optional<RecordFunction> label_;
  Recording recording_;
};

Profile::Profile(ProfileOptions options) : impl_(std::make_unique<Impl>(*this, std::move(options))) {}
Profile::~Profile() { impl_->abandon(); }

void Profile::start() { impl_->start(); }
void Profile::stop() { impl_->stop(); }
void Profile::step() { impl_->step(); }
void Profile::pause() { impl_->pause(); }
void Profile::resume() { impl_->resume(); }
std::int64_t Profile::step_number() const { return impl_->step_number(); }
const Recording& Profile::recording() const { return impl_->recording(); }
AverageList Profile::key_averages(GroupBy group_by) const {
  return averages(impl_->recorded("key_averages"), group_by);
}
void Profile::export_chrome_trace(const std::string& path) const {
  write_chrome_trace(impl_->recorded("export_chrome_trace"), path);
}
void Profile::export_stacks(const std::string& path, std::string_view metric) const {
  write_folded_stacks(impl_->recorded("export_stacks"), path, metric);
}
void Profile::export_memory_history(const std::string& path, Device device) const {
  write_memory_history(impl_->recorded("export_memory_history"), path, device);
}

}  // namespace tenon::profiler
