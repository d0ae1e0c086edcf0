// What a running experiment tells: how far it is, and lines worth keeping.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

struct ExperimentResult;
namespace memory {
struct AttributionReport;
}

struct Progress {
  std::int64_t step = 0;   ///< done so far, over all epochs
  std::int64_t steps = 0;  ///< in all
  int epoch = 0;           ///< from 1
  int epochs = 0;
  std::optional<double> loss;           ///< of the last step; none where nothing is computed
  std::optional<double> learning_rate;  ///< of the last step, the first group's
  double step_ms = 0;                   ///< that it took; 0: not measured
  std::int64_t examples = 0;            ///< in it; requests that it has served
  std::string phase;  ///< "train", "test", "tested" (an epoch is over, its model lives), "reading data", "serve"
};

/// "0.4312", or "not finite": of a run that diverged, nan and infinities say no more.
TENON_API std::string loss_text(double loss);

/// Told while an experiment runs; calls are cheap and frequent, the sink decides what to show.
class TENON_EXPORT ProgressSink {
 public:
  ProgressSink() = default;
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;
  TENON_API virtual ~ProgressSink();
  virtual void progress(const Progress& progress) = 0;
  /// A finished line worth keeping: "epoch 1/5: loss 0.4312, test accuracy 85.2 %, 12.1 s".
  virtual void note(std::string_view line) = 0;
  /// What begins now: "step 3 of 100", "the test of epoch 1".
  virtual void entering(std::string_view /*what*/) {}
  /// A step of training, or of serving, begins now.
  virtual void step_begins() {}
  /// All is set up: the first step comes next.
  virtual void beginning() {}
  /// The figures of this part of the run, after each step and each epoch.
  virtual void figures(const ExperimentResult& /*part*/) {}
  /// The run cannot go on: what there is of it, the parts before this one included. Once, before the error is thrown.
  virtual void broken_off(const ExperimentResult& /*so_far*/) {}
  /// Whose the memory was when a request failed, where that is attributed (report.attribution).
  virtual void attributed(const memory::AttributionReport& /*at_failure*/) {}
  /// Those of the parts that a resumed run goes on from, once.
  virtual void earlier_figures(const ExperimentResult& /*earlier*/) {}
  /// Whether the run should end after the step, or the batch of a test, that it is at.
  virtual bool is_stopping() const { return false; }
};

/// Tells another one everything: what stands between a run and those who watch it overrides what it is about.
class TENON_EXPORT ForwardedProgress : public ProgressSink {
 public:
  /// `inner` outlives it.
  explicit ForwardedProgress(ProgressSink& inner) : inner_(inner) {}
  void progress(const Progress& now) override { inner_.progress(now); }
  void note(std::string_view line) override { inner_.note(line); }
  void entering(std::string_view what) override { inner_.entering(what); }
  void step_begins() override { inner_.step_begins(); }
  void beginning() override { inner_.beginning(); }
  void figures(const ExperimentResult& part) override { inner_.figures(part); }
  void broken_off(const ExperimentResult& so_far) override { inner_.broken_off(so_far); }
  void attributed(const memory::AttributionReport& at_failure) override { inner_.attributed(at_failure); }
  void earlier_figures(const ExperimentResult& earlier) override { inner_.earlier_figures(earlier); }
  bool is_stopping() const override { return inner_.is_stopping(); }

 private:
  ProgressSink& inner_;
};

}  // namespace tenon
