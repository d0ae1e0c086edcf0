// The state of a run, for one that goes on with it: written when it is asked for, when the run ends early, and every
// few steps. Declared in training.h.
#include <tenon/train/training.h>

#include <tenon/nn/lora.h>
#include <tenon/train/parallel/whole_state.h>

#include <fmt/format.h>

#include <optional>
#include <vector>

namespace tenon::train {

/// What ranks have parts of, or remember parts of, is whole on the one that saves.
void Training::save_whole(const std::function<void()>& save) {
  std::optional<WholeState> whole;
  const std::vector<Tensor> trained = nn::trainable_parameters(*model_.module);
  if (const auto& ranks = ranks_.tensor_parallel())
    whole.emplace(DividedRun{*ranks, *optimizer_, trained, masters_ ? masters_->parameters() : trained});
  ranks_.save_on_writer(save);
}

void Training::save() {
  const std::string& file = options_.text("save");
  if (file.empty() || !limits_.is_whole()) return;
  save_whole([&] { save_run(config_.resolve(file), saved_parts(), position(), so_far()); });
}

/// A run goes on where its state cannot be kept: its figures are worth more.
void Training::keep_state() {
  if (!state_.file.empty()) save_whole([this] { write_state(); });
}

void Training::write_state() {
  try {
    save_run(state_.file, saved_parts(), position(), so_far());
    result_.kept_step = steps_done();
    result_.state_problem.clear();
  } catch (const std::exception& error) {
    if (result_.state_problem.empty())
      progress_.note(fmt::format("step {}: the state of the run could not be kept: {}", steps_done(), error.what()));
    result_.state_problem = error.what();
  }
}

}  // namespace tenon::train
