// The profiler: which operators a program calls, how long they take, and what memory they take and give back.
//
//   tenon::profiler::profile profile({.record_shapes = true, .profile_memory = true});
//   profile.start();
//   … training steps …
//   profile.stop();
//   std::cout << profile.key_averages().table({.sort_by = "self_cpu_memory_usage", .row_limit = 10});
//
// Names and semantics are torch.profiler's. Operators are shown under PyTorch's names, "aten::linear".
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/core/scope/scope.h>
#include <tenon/profiler/averages.h>
#include <tenon/profiler/event.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace tenon::profiler {

/// A label around a part of the program, while it lives: record_function("data augmentation"). An empty one is called
/// "(unnamed)".
class RecordFunction {
 public:
  explicit RecordFunction(const char* label) noexcept
      : scope_(scopes::Kind::kLabel, *label != '\0' ? label : "(unnamed)") {}
  explicit RecordFunction(const std::string& label) noexcept : RecordFunction(label.c_str()) {}

 private:
  scopes::Scope scope_;
};
using record_function = RecordFunction;

/// What a schedule says of a step.
enum class ProfilerAction : std::uint8_t {
  kNone,
  kWarmup,  ///< recorded and thrown away, so that the first recorded step pays for nothing
  kRecord,
  kRecordAndSave,  ///< the last step of a recording: on_trace_ready is called when it ends
};

/// Which steps are recorded: skip_first, then wait, warmup and active steps over and over, `repeat` times (0: without
/// end).
struct ScheduleOptions {
  std::int64_t wait = 0;
  std::int64_t warmup = 0;
  std::int64_t active = 1;
  std::int64_t repeat = 0;
  std::int64_t skip_first = 0;
};
using Schedule = std::function<ProfilerAction(std::int64_t step)>;
/// PyTorch's schedule. Throws Error for a negative number, and without an active step.
TENON_API Schedule schedule(const ScheduleOptions& options);

class Profile;

struct ProfileOptions {
  bool device = true;           ///< kernels and copies of devices, on the device's own clock
  bool record_shapes = false;   ///< of the operands of operators
  bool profile_memory = false;  ///< what is allocated and freed
  bool with_stack = false;      ///< where the program called an operator, opened a label or module: slow
  bool with_flops = false;      ///< floating-point operations of the kernels that have them
  bool with_modules = true;     ///< modules in the trace, and their calls counted in key_averages() by module
  Schedule schedule = nullptr;  ///< none: everything from start() to stop()
  std::int64_t first_step = 0;  ///< the number of the step that comes first: of a run that goes on, those it has done
  std::function<void(Profile& profile)> on_trace_ready = nullptr;  ///< when a recording has ended
};

/// Records the whole process from start() to stop(). One thread calls its functions.
class TENON_API Profile {
 public:
  explicit Profile(ProfileOptions options = {});
  /// Stops; on_trace_ready is not called any more.
  ~Profile();
  Profile(Profile&) = delete;  // not of const, or `profile p({})` would mean two things
  Profile& operator=(const Profile&) = delete;

  /// Throws Error where it has started.
  void start();
  /// Ends the recording and calls on_trace_ready, unless nothing was recorded. Throws Error where it has not started.
  void stop();
  /// A step has ended: where a schedule says so, recording begins, or ends and on_trace_ready is called. Not to be
  /// called inside of a scope that began after the last call.
  void step();
  /// Of the step that goes on; in on_trace_ready that calls from step(), as in PyTorch, of the one that begins.
  std::int64_t step_number() const;
  /// Between steps: until resume() nothing is recorded but what is allocated and freed, as for a test that is no part
  /// of the next step. step() may be called meanwhile. Not to be called inside of a scope that ends before resume().
  /// Throws Error where it has not started. A second pause() and a resume() of what is not paused do nothing.
  void pause();
  void resume();

  /// What was recorded last. Throws Error while recording.
  const Recording& recording() const;
  /// Its rows. Throws Error before the first start(), as the exports do.
  AverageList key_averages(GroupBy group_by = GroupBy::kName) const;
  /// A Chrome trace, for Perfetto, chrome://tracing and `tenon replay`; gz where the name ends so. Throws Error where
  /// it cannot be written.
  void export_chrome_trace(const std::string& path) const;
  /// Folded stacks, "main;aten::linear 123", for flame graphs. `metric`: self_cpu_time_total, self_device_time_total
  /// (self_cuda_time_total), in microseconds, or self_cpu_memory_usage, self_device_memory_usage, in bytes allocated.
  /// With stacks (with_stack) they begin with the program's own functions, "main.cpp(12): main;aten::linear 123"; an
  /// event stands below those that had called it when it began. Throws Error for another metric, and for one of memory
  /// where that was not recorded.
  void export_stacks(const std::string& path, std::string_view metric = "self_cpu_time_total") const;
  /// What was asked of the memory of a device, as a history for `tenon replay` (the text form). What lived before is
  /// there block by block, by address; of an allocator that shows no blocks what is never given back is one. Throws
  /// Error where memory was not recorded, and for a device that the recording has nothing of.
  void export_memory_history(const std::string& path, Device device = kCPU) const;

 private:
  class Impl;
  Owned<Impl> impl_;
};
using profile = Profile;

}  // namespace tenon::profiler
