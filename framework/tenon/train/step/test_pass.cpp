// The test of an epoch: each rank tests some of the batches. Declared in training.h.
#include <tenon/train/training.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/scope/scope.h>

#include <fmt/format.h>

#include <limits>
#include <vector>

namespace tenon::train {

bool Training::test(int epoch, EpochResult& figures) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  check_attribution("before a test");
  device_.allocator().mark(fmt::format("test {}", epoch));
  if (scopes::is_listening()) scopes::tell_marked(fmt::format("test {}", epoch));
  progress_.entering(fmt::format("the test of epoch {}", epoch));
  device_.allocator().reset_peak_stats();
  phases_.begin(device_.allocator().stats());
  ranks_.share_buffers(*model_.module);
  model_.module->eval();
  AutoGradMode grad_mode(!options_.boolean("eval_no_grad"));
  data_.test->begin(0, /*shuffle=*/false);
  const std::int64_t at_once = options_.integer("test_batch_size");
  std::int64_t size = data_.test->size();
  if (limits_.test_batches > 0)  // on each rank
    size = std::min(size, limits_.test_batches * ranks_.batch_parts() * at_once);
  // Batches of other ranks stay zero, so that the sums below are those of one process, to the bit.
  std::vector<double> losses, right, answers;
  // Where parameters are divided, a forward pass gathers them, so that all ranks go through as many, and stop together.
  const bool is_together = ranks_.divides_parameters();
  bool is_stopping = false;
  for (std::int64_t first = 0; first < size; first += at_once) {
    losses.push_back(0);
    right.push_back(0);
    answers.push_back(0);
    const std::int64_t turn = (first / at_once) % ranks_.batch_parts();
    if (!is_together)
      is_stopping = is_stopping || progress_.is_stopping();
    else if (turn == 0)
      is_stopping = ranks_.any(progress_.is_stopping());
    if (is_stopping) continue;
    const bool is_last = first + at_once >= size;
    const bool is_mine = turn == ranks_.batch_part();
    if (!is_mine) {
      if (is_together && is_last && turn < ranks_.batch_part()) model_.forward(data_.test->get(0, 1).input);
      continue;
    }
    report("test", epoch, kNone);
    const std::int64_t count = std::min(at_once, size - first);
    const Batch batch = data_.test->get(first, count);
    const auto pass = precision_->forward_pass();
    const Tensor logits = pipeline_ ? pipeline_->forward(batch.input) : model_.forward(batch.input);
    const Tensor target = batch.target.to(logits.device(), batch.target.scalar_type());
    losses.back() = step_->number(loss_of(model_, logits, target)) * static_cast<double>(count);
    right.back() = model_.has_answers ? step_->number(right_answers(logits, target)) : kNone;
    answers.back() = static_cast<double>(batch.answers);
  }
  ranks_.after_test();
  if (ranks_.any(is_stopping)) return false;
  const auto total = [this](std::vector<double>& of_batches) {
    ranks_.sum(of_batches);
    double sum = 0;
    for (const double value : of_batches) sum += value;
    return sum;
  };
  figures.test_loss = total(losses) / static_cast<double>(size);
  figures.test_accuracy = total(right) / total(answers);
  const MemoryStats after = device_.allocator().stats();
  phases_.end(RunPhase::kTesting, after, result_.peak);
  check_attribution("test");
  merge_peaks(result_.memory, after);
  return true;
}

}  // namespace tenon::train
