// Sums over the ranks, and what is theirs alone.
#include <tenon/train/step/ranks.h>

#include <tenon/comm/compared_text.h>
#include <tenon/comm/missing_ranks.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>
#include <tenon/nn/lora.h>
#include <tenon/runtime/result_files.h>
#include <tenon/tensor/generator.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/input/split_mix.h>
#include <tenon/train/parallel/pipeline_parallel.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/serve/serving.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <string>

namespace tenon::train {
namespace {

/// Dropout of two ranks is not the same; parameters are made by then, alike on all.
void give_own_random_numbers(int rank) {
  if (rank == 0) return;
  RandomStates states = random_states();
  for (auto& state : states.states) state.seed = SplitMix(state.seed + static_cast<std::uint64_t>(rank)).next();
  set_random_states(states);
}

/// Of ranks of which so many neighbours divide the layers, those that have the same part; null: this one alone.
std::shared_ptr<Communicator> data_ranks(const std::shared_ptr<Communicator>& all, int parts) {
  if (all == nullptr || all->size() == parts) return nullptr;
  if (parts == 1) return all;
  std::vector<int> ranks;
  for (int rank = all->rank() % parts; rank < all->size(); rank += parts) ranks.push_back(rank);
  return all->new_group(ranks);
}

}  // namespace

Ranks::Ranks(const ExperimentConfig& config, std::shared_ptr<Communicator> communicator)
    : options_(config.section("distributed")),
      communicator_(std::move(communicator)),
      tensor_parallel_(tensor_parallel_of(config, communicator_)),
      data_(data_ranks(communicator_, static_cast<int>(layer_parts(tensor_parallel_)))),
      has_stages_(is_pipeline(config)) {}

int Ranks::threads_of_each(int all) const {
  return are_many() ? std::max(1, all / std::max(1, rank_environment().local_size)) : all;
}

void Ranks::together(const std::function<void()>& set_up) const {
  if (!are_many()) return set_up();
  std::exception_ptr failure;
  try {
    set_up();
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  std::uint8_t own = failure ? 1 : 0;
  std::vector<std::uint8_t> all(static_cast<std::size_t>(size()));
  communicator_
      ->all_gather({.data = all.data(), .count = all.size(), .dtype = kUInt8},
                   {.data = &own, .count = 1, .dtype = kUInt8})
      ->wait();
  all[static_cast<std::size_t>(rank())] = own;
  const auto first = std::ranges::find(all, 1);
  if (first == all.end()) return;
  if (first - all.begin() == rank()) std::rethrow_exception(failure);
  communicator_->barrier()->wait();  // which that one does not come to: it says why
}

void Ranks::compare(const std::string& facts) const {
  if (!are_many()) return;
  const std::vector<std::string> texts = differing_texts(*communicator_, facts);
  if (texts.empty()) return;
  std::map<int, std::string> by_rank;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) by_rank[static_cast<int>(rank)] = texts[rank];
  if (rank() == 0)
    throw ConfigError(
        fmt::format("the ranks do not see the same data or saved state: {}: give all of them the same "
                    "files (data.path, train.resume)",
                    camps_of(by_rank).text));
  communicator_->barrier()->wait();  // to which rank 0 does not come: it says why
}

void Ranks::begin(const nn::Module& module) {
  if (batch_parts() == 1) return;  // the same seed made what is whole on every rank
  nn::parallel::check_same_parameters(module, *data_);
  std::vector<Tensor> state = module.parameters();
  for (const Tensor& buffer : module.buffers()) state.push_back(buffer);
  distributed::broadcast_coalesced(*data_, state, /*root=*/0);
  give_own_random_numbers(batch_part());
  if (divides_gradients() || has_stages_) return;
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const auto& named : module.named_parameters()) parameters.emplace_back(named.key(), named.value());
  const std::size_t cap = options_.size("bucket_cap");
  reducer_ = std::make_unique<distributed::Reducer>(
      std::move(parameters), data_,
      distributed::ReducerOptions{.bucket_bytes = cap,
                                  .first_bucket_bytes = std::min(cap, std::size_t{1} << 20),
                                  .find_unused_parameters = options_.boolean("find_unused_parameters"),
                                  .average = false,
                                  .overlap = options_.boolean("overlap")});
}

distributed::ShardingOptions Ranks::sharding_options() const {
  return {.parameters = divides_parameters(),
          .average = false,
          .overlap = options_.boolean("overlap"),
          .prefetch = options_.boolean("prefetch"),
          .find_unused_parameters = options_.boolean("find_unused_parameters")};
}

void Ranks::shard(const nn::Module& module, optim::Optimizer& optimizer, Device device) {
  if (!are_many()) return;
  if (options_.text("shard") == "optimizer")
    sharded_ = std::make_unique<optim::ZeroRedundancyOptimizer>(optimizer, communicator_);
  if (!divides_gradients()) return;
  distributed::ShardingOptions options = sharding_options();
  options.device = device;
  sharding_ = std::make_shared<distributed::Sharding>(module, communicator_, options);
  shards_ = std::make_unique<optim::ShardedOptimizer>(optimizer, sharding_);
  const PurposeGuard purpose(Purpose::kParameter);
  for (const Tensor& buffer : module.buffers())  // parameters are there
    if (buffer.device() != device) buffer.set_data(buffer.to(device, buffer.scalar_type()));
}

void Ranks::step() {
  if (shards_)
    shards_->step();
  else
    sharded_->step();
}

distributed::ShardingBytes Ranks::sharding_bytes(const nn::Module& module) const {
  return distributed::sharding_bytes(module, size(), sharding_options());
}

std::vector<Tensor> Ranks::remembered(const nn::Module& module) const {
  std::vector<Tensor> trained = nn::trainable_parameters(module);
  if (divides_gradients()) {
    const auto named = module.named_parameters();
    std::vector<Tensor> own;
    for (const distributed::ShardUnit& unit : distributed::shard_units(module, distributed::is_numbered)) {
      for (const auto& group : unit.groups) {
        std::int64_t elements = 0;
        for (const std::size_t i : group) elements += named[i].value().numel();
        std::int64_t start = 0;
        for (const std::size_t i : group) {
          const Tensor parameter = named[i].value().detach();
          const auto range =
              distributed::shard_range(start, parameter.numel(), distributed::share_of(elements, size()), rank());
          start += parameter.numel();
          if (named[i].value().requires_grad() && range.count > 0)
            own.push_back(parameter.reshape({-1}).narrow(0, range.begin, range.count));
        }
      }
    }
    return own;
  }
  if (!are_many() || options_.text("shard") != "optimizer") return trained;
  const std::vector<int> owners = optim::partition_parameters(trained, size());
  std::vector<Tensor> own;
  for (std::size_t i = 0; i < trained.size(); ++i)
    if (owners[i] == rank()) own.push_back(trained[i]);
  return own;
}

void Ranks::save_on_writer(const std::function<void()>& save) {
  if (sharded_) sharded_->consolidate_state_dict(/*to=*/0);
  if (shards_) {
    shards_->consolidate_state_dict(/*to=*/0);
    sharding_->copy_to_host(/*to=*/0);
  }
  if (is_writer()) save();
  if (sharded_) sharded_->drop_consolidated();
  if (shards_) {
    sharding_->forget_host_copy();
    shards_->drop_consolidated();
  }
}

void Ranks::share_buffers(const nn::Module& module) {
  if (batch_parts() == 1 || !options_.boolean("broadcast_buffers")) return;
  if (const std::vector<Tensor> buffers = module.buffers(); !buffers.empty())
    distributed::broadcast_coalesced(*data_, buffers, /*root=*/0);
}

void Ranks::before_backward(const Tensor& loss, bool is_last) {
  if (sharding_) sharding_->prepare_for_backward({loss});
  if (reducer_ && is_last) reducer_->prepare_for_backward({loss});
}

void Ranks::after_backward(bool is_last) const {
  if (sharding_) sharding_->check_finished();
  if (reducer_ && is_last) reducer_->check_finished();
}

void Ranks::sum_gradients(const nn::Module& module) const {
  if (batch_parts() == 1) return;
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : module.parameters())
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  distributed::all_reduce_coalesced(*data_, gradients, options_.size("bucket_cap"));
}

void Ranks::sum(std::vector<double>& parts) const {
  if (batch_parts() == 1) return;
  data_->all_reduce({.data = parts.data(), .count = parts.size(), .dtype = kFloat64}, ReduceOp::kSum)->wait();
}

double Ranks::sum(double part) const {
  std::vector<double> one = {part};
  sum(one);
  return one.front();
}

bool Ranks::any(bool mine) const {
  if (!are_many()) return mine;
  std::uint8_t one = mine ? 1 : 0;
  communicator_->all_reduce({.data = &one, .count = 1, .dtype = kUInt8}, ReduceOp::kMax)->wait();
  return one != 0;
}

// One message for all of it: a run that breaks off has every rank's memory of the step before. Who had more examples of
// a batch drew more random numbers: all go on behind the most, as a saved state, which is of rank 0, says of everyone.
// After every step: were it only where a state is saved, when it was saved would change what comes after.
bool Ranks::after_step(bool ends, const MemoryStats& mine, std::vector<RankMemory>& all) const {
  if (!are_many()) return ends;
  const auto peak_of = [&](Purpose purpose) {
    return mine.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  };
  std::vector<std::int64_t> own = {mine.requested_bytes.peak,
                                   mine.allocated_bytes.peak,
                                   mine.reserved_bytes.peak,
                                   peak_of(Purpose::kOptimizerState),
                                   peak_of(Purpose::kParameter),
                                   peak_of(Purpose::kGradient),
                                   ends ? 1 : 0};
  const std::size_t facts = own.size();
  RandomStates random = random_states();
  for (const auto& state : random.states) own.push_back(std::bit_cast<std::int64_t>(state.offset));
  std::vector<std::int64_t> told(own.size() * static_cast<std::size_t>(size()));
  communicator_
      ->all_gather({.data = told.data(), .count = told.size(), .dtype = kInt64},
                   {.data = own.data(), .count = own.size(), .dtype = kInt64})
      ->wait();
  all.clear();
  for (std::size_t i = 0; i < told.size(); i += own.size()) {
    all.push_back({.peak_requested_bytes = told[i],
                   .peak_allocated_bytes = told[i + 1],
                   .peak_reserved_bytes = told[i + 2],
                   .peak_optimizer_state_bytes = told[i + 3],
                   .peak_parameter_bytes = told[i + 4],
                   .peak_gradient_bytes = told[i + 5]});
    ends = ends || told[i + 6] != 0;
    std::size_t next = i + facts;
    for (auto& state : random.states) state.offset = std::max(state.offset, std::bit_cast<std::uint64_t>(told[next++]));
  }
  set_random_states(random);
  return ends;
}

void Ranks::note_communication(std::vector<std::pair<std::string, double>>& figures) const {
  if (tensor_parallel_) {
    figures.emplace_back("tensor_parallel_sent_bytes",
                         static_cast<double>(tensor_parallel_->ranks()->stats().bytes_of(CommKind::kAllReduce)));
  }
  if (are_many()) figures.emplace_back("ranks", size());
  if (are_many() && data_) figures.emplace_back("data_ranks", batch_parts());
  if (!reducer_ && !sharding_) return;
  const distributed::ReducerStats& stats = reducer_ ? reducer_->stats() : sharding_->stats();
  figures.emplace_back("sent_gradient_bytes", static_cast<double>(stats.bytes));
  figures.emplace_back("communication_seconds", stats.busy_seconds);
  figures.emplace_back("communication_waited_seconds", stats.waited_seconds);
  figures.emplace_back("communication_hidden", stats.hidden_share());
}

void Ranks::abort(const std::exception& reason) const noexcept {
  if (!communicator_) return;
  const auto* const known = dynamic_cast<const Error*>(&reason);
  communicator_->abort(reason.what(), known == nullptr ? ExitCode::kFailed : known->exit_code());
}

RunState as_rank_0_says(RunState state) {
  if (state.ranks == nullptr || state.ranks->size() == 1) return state;
  const std::uint8_t goes_on = state.go_on ? 1 : 0;
  std::uint8_t said[] = {goes_on, static_cast<std::uint8_t>(state.file.empty() ? 0 : 1)};
  state.ranks->broadcast({.data = said, .count = 2, .dtype = kUInt8}, /*root=*/0)->wait();
  state.go_on = said[0] != 0;
  if (said[1] != 0 && state.file.empty()) state.file = kStateFile;  // of rank 0, which alone writes it
  return state;
}

void check_ranks(const ExperimentConfig& config) {
  if (config.distributed.name.empty()) return;
  const auto refuse = [&](const char* key, const char* why) { throw config.error(key, why); };
  if (serves(config)) refuse("distributed.name", "requests are served by one process: leave it out with [serve]");
  if (has_auto_batch(config))
    refuse("train.batch_size", "\"auto\" finds the largest batch of one process: with ranks give a number");
  if (config.section("train").boolean("optimizer_in_backward"))
    refuse("train.optimizer_in_backward",
           "ranks sum their gradients before the update, and here they are gone by then");
  if (config.devices.size() > 1 && !is_pipeline(config))
    refuse("device.names",
           "each rank computes on one device, or has the stages of a pipeline on several: set device.name, or "
           "train.parallel = \"pipeline\"");
  if (config.section("train").size("checkpoint_memory") > 0)
    refuse("train.checkpoint_memory",
           "blocks are found by runs of one process: with ranks give train.checkpoint_blocks");
  const std::string& shard = config.section("distributed").text("shard");
  if (shard == "none") return;
  if (is_pipeline(config))
    refuse("distributed.shard",
           "the stages of a pipeline are several devices of a rank, and what is divided lies on one: leave one out");
  const Options& train = config.section("train");
  if (train.boolean("master_weights"))
    refuse("distributed.shard", "with train.master_weights each rank has masters of all parameters: leave one out");
  if (shard == "optimizer") return;
  if (train.text("optimizer_states") != "full")
    refuse("distributed.shard",
           "train.optimizer_states keeps 256 values together, of which a rank may have a part: leave one out, or set "
           "\"optimizer\", which divides whole parameters");
  if (train.text("quantize") != "none")
    refuse("distributed.shard",
           "train.quantize makes integers of a whole model, and here none is whole: leave one out");
}

}  // namespace tenon::train
