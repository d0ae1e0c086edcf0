// How a run goes on from a file, and what of it a file holds. Declared in training.h.
#include <tenon/train/training.h>

#include <tenon/nn/lora.h>
#include <tenon/train/parallel/whole_state.h>
#include <tenon/train/resume/saved_run.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace tenon::train {

void Training::resume() {
  const std::string& file = options_.text("resume");
  if (file.empty() && !state_.go_on) return;
  if (std::error_code ignored; !state_.go_on && !std::filesystem::is_regular_file(config_.resolve(file), ignored))
    throw config_.error("train.resume", fmt::format("there is no saved state '{}'", file));
  const RunPosition now = position();
  const std::vector<Tensor> trained = nn::trainable_parameters(*model_.module);
  std::optional<DividedRun> divided;
  if (const auto& ranks = ranks_.tensor_parallel())
    divided.emplace(DividedRun{*ranks, *optimizer_, trained, masters_ ? masters_->parameters() : trained});
  if (divided) make_room_for_whole(*divided);
  const RunPosition position = state_.go_on ? load_run(state_.file, saved_parts(), now, &earlier_)
                                            : load_run(config_.resolve(file), saved_parts(), now);
  if (divided) keep_parts(*divided);
  first_step_ = position.steps;
  if (limits_.steps > 0) last_step_ = std::min(planned_steps_, first_step_ + limits_.steps);
  if (state_.go_on) progress_.earlier_figures(earlier_);
  epoch_ = position.epoch;
  epoch_loss_sum_ = position.epoch_loss_sum;
  epoch_seconds_ = position.epoch_seconds;
  if (first_step_ > earlier_.steps)
    result_.figures.emplace_back("resumed_at_step", static_cast<double>(first_step_ - earlier_.steps));
  result_.kept_step = state_.go_on ? first_step_ : 0;
  progress_.note(fmt::format("going on after step {} of {}", first_step_, last_step_));
  if (epoch_ > 1) data_.test->begin(0, /*shuffle=*/false);  // as the test before left it on the device
  // What reading the file took is not of the run; what its set-up took was counted by the part that began it.
  device_.allocator().trim(0);
  device_.allocator().reset_peak_stats();
  if (state_.go_on) device_.allocator().reset_accumulated_stats();
}

RunPosition Training::position() const {
  return {.steps = steps_done(),
          .epoch = epoch_,
          .epoch_loss_sum = epoch_loss_sum_,
          .epoch_seconds = epoch_seconds_,
          .seed = options_.integer("seed"),
          .batch_size = batch_size_,
          .examples = data_.train->size(),
          .settings = lasting_settings(config_)};
}

RunParts Training::saved_parts() {
  return {.module = *model_.module,
          .optimizer = *optimizer_,
          .scaler = precision_->scaler(),
          .masters = masters_ ? &*masters_ : nullptr};
}

}  // namespace tenon::train
