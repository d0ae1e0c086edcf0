// The ranks' modules made and kept equal.
#include <tenon/nn/distributed/distributed_data_parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/comm/compared_text.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace tenon::nn::parallel {

namespace {

/// A line for each parameter and buffer.
std::string text_of(const Module& module) {
  std::string text;
  const auto add = [&text](const auto& all, const char* what, const char* untrained) {
    for (const auto& named : all)
      text += fmt::format("{} {} of [{}] {}{}\n", what, named.key(), fmt::join(named.value().sizes(), ", "),
                          name_of(named.value().scalar_type()), named.value().requires_grad() ? "" : untrained);
  };
  add(module.named_parameters(), "parameter", ", not trained");
  add(module.named_buffers(), "buffer", "");
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Where the first two that differ do, of how many there are.
std::string difference(const std::string& one, const std::string& other) {
  const std::vector<std::string> a = lines_of(one), b = lines_of(other);
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string of_a = i < a.size() ? a[i] : "nothing more", of_b = i < b.size() ? b[i] : "nothing more";
    if (of_a != of_b) return fmt::format("has {}, where that of rank 0 has {}", of_a, of_b);
  }
  return {};
}

}  // namespace

void detail::collect_tensors(const Tensor& tensor, std::vector<Tensor>& into) { into.push_back(tensor); }

// torch's _verify_params_across_processes.
void check_same_parameters(const Module& module, Communicator& ranks) {
  if (ranks.size() == 1) return;
  const std::vector<std::string> texts = differing_texts(ranks, text_of(module));
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    throw DistributedError(fmt::format("rank {} of {}: the model of rank {} {}: every rank makes the same model",
                                       ranks.rank(), ranks.size(), rank, difference(texts[rank], texts[0])),
                           {static_cast<int>(rank)});
  }
}

DistributedDataParallelBase::DistributedDataParallelBase(std::shared_ptr<Module> module,
                                                         std::shared_ptr<Communicator> ranks,
                                                         const DistributedDataParallelOptions& options)
    : Module("DistributedDataParallel"), inner_(std::move(module)), ranks_(std::move(ranks)), options_(options) {
  if (options_.bucket_cap_mb <= 0)
    throw Error(fmt::format("bucket_cap_mb is {}: it must be more than 0", options_.bucket_cap_mb));
  register_module("module", inner_);
  check_same_parameters(*inner_, *ranks_);
  if (options_.init_sync) {
    std::vector<Tensor> state = inner_->parameters();
    for (const Tensor& buffer : inner_->buffers()) state.push_back(buffer);
    distributed::broadcast_coalesced(*ranks_, state, /*root=*/0);
  }
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& named : inner_->named_parameters()) parameters.emplace_back(named.key(), named.value());
  const auto cap = static_cast<std::size_t>(options_.bucket_cap_mb * (1 << 20));
  reducer_ = std::make_unique<distributed::Reducer>(
      std::move(parameters), ranks_,
      distributed::ReducerOptions{.bucket_bytes = cap,
                                  .first_bucket_bytes = std::min(cap, std::size_t{1} << 20),
                                  .find_unused_parameters = options_.find_unused_parameters,
                                  .gradient_as_bucket_view = options_.gradient_as_bucket_view});
}

void DistributedDataParallelBase::before_forward() {
  if (!is_synchronizing_ || !options_.broadcast_buffers || !is_training()) return;
  if (const std::vector<Tensor> buffers = inner_->buffers(); !buffers.empty())
    distributed::broadcast_coalesced(*ranks_, buffers, /*root=*/0);
}

void DistributedDataParallelBase::after_forward(const std::vector<Tensor>& outputs) {
  if (is_synchronizing_ && GradMode::is_enabled()) reducer_->prepare_for_backward(outputs);
}

}  // namespace tenon::nn::parallel
