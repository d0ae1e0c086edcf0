// Which techniques an experiment uses, and which exclude each other.
#include <tenon/train/step/techniques.h>

#include <tenon/autograd/checkpoint.h>
#include <tenon/core/options.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/parallel/pipeline_parallel.h>
#include <tenon/train/step/mixed_precision.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {
namespace {

void check_optimizer_in_backward(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const auto refuse = [&](const char* why) { throw config.error("train.optimizer_in_backward", why); };
  if (train.integer("micro_batches") > 1)
    refuse("with train.micro_batches the gradients of the parts have to add up before the update");
  if (train.real("clip_grad_norm") > 0)
    refuse(
        "train.clip_grad_norm needs the norm of all gradients before the first update, and they never exist together");
  if (train.text("precision").starts_with("float16"))
    refuse(
        "with train.precision = \"float16…\" the loss is scaled, and whether a gradient overflowed is known after the "
        "last");
  if (train.text("zero_grad") == "zero")
    refuse("train.zero_grad = \"zero\" keeps gradients that are given back in backward here: leave it at \"none\"");
}

void check_checkpoint(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const auto refuse = [&](const char* key, const std::string& why) { throw config.error(key, why); };
  // What says how many blocks run again: one of them, and only where any do.
  std::vector<const char*> given;
  if (train.integer("checkpoint_blocks") > 0) given.push_back("train.checkpoint_blocks");
  if (train.real("checkpoint_budget") > 0) given.push_back("train.checkpoint_budget");
  if (train.size("checkpoint_memory") > 0) given.push_back("train.checkpoint_memory");
  if (given.empty()) return;
  if (!train.boolean("checkpoint"))
    refuse(given.back(), "train.checkpoint is off: set it to true for blocks to run again");
  if (given.size() > 1)
    refuse(given.back(), given.front() + std::string(" says already how many blocks run again: leave one out"));
  if (train.size("checkpoint_memory") > 0 && train.integer("batch_size") == 0)
    refuse("train.checkpoint_memory",
           "train.batch_size = \"auto\" takes the memory that fewer checkpointed blocks would need: say the batch, or "
           "train.checkpoint_blocks");
}

struct GroupOfOperators {
  const char* name;  ///< in train.checkpoint_keep
  bool KeptKinds::*kind;
};
const std::vector<std::pair<GroupOfOperators, std::vector<std::string>>>& groups() {
  static const std::vector<std::pair<GroupOfOperators, std::vector<std::string>>> all = {
      {{"products", &KeptKinds::products}, {"mm", "bmm", "addmm", "baddbmm"}},
      {{"attention", &KeptKinds::attention}, {"scaled_dot_product_attention"}},
      {{"convolutions", &KeptKinds::convolutions}, {"convolution"}}};
  return all;
}

/// "products,attention" of train.checkpoint_keep.
KeptKinds kept_kinds(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const auto refuse = [&](const std::string& why) { throw config.error("train.checkpoint_keep", why); };
  const std::string& text = train.text("checkpoint_keep");
  if (text == "none") return {};
  if (!train.boolean("checkpoint")) refuse("train.checkpoint is off: everything is kept");
  KeptKinds kinds;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto group = std::ranges::find_if(groups(), [&](const auto& known) { return known.first.name == word; });
    if (group != groups().end()) {
      kinds.*(group->first.kind) = true;
    } else if (std::ranges::find(keepable_operators(), word) != keepable_operators().end()) {
      kinds.operators.push_back(word);
    } else {
      const std::string near = nearest_name(word, keepable_operators());
      refuse(
          fmt::format("'{}' is none of products, attention, convolutions, nor an operator whose results can be kept, "
                      "such as gelu, layer_norm, softmax{}",
                      word, near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
    }
  }
  if (train.boolean("inplace_activations") && (kinds.products || kinds.convolutions || !kinds.operators.empty()))
    refuse("with train.inplace_activations an activation overwrites the result that would be kept");
  return kinds;
}

std::int64_t checkpointed_blocks(const Options& train) {
  if (!train.boolean("checkpoint")) return 0;
  const std::int64_t blocks = train.integer("checkpoint_blocks");
  return blocks > 0 ? blocks : CheckpointedBlocks::kAll;
}

void check_offload(const ExperimentConfig& config, const Techniques& techniques) {
  if (config.device.is_cpu())
    throw config.error("train.offload", "the memory of the device cpu is host memory: there is nowhere else to go");
  if (techniques.offload_optimizer && !remembers(config.section("train")))
    throw config.error("train.offload", "sgd without train.momentum remembers nothing that could wait elsewhere");
  if (techniques.offload_activations && config.section("train").boolean("checkpoint"))
    throw config.error("train.offload",
                       "with train.checkpoint a block keeps its input alone, for its second forward pass and on the "
                       "device: nothing that is saved for backward waits");
}

void check_optimizer_states(const ExperimentConfig& config) {
  if (config.section("train").text("optimizer_states") != "full" && !remembers(config.section("train")))
    throw config.error("train.optimizer_states",
                       "sgd without train.momentum remembers nothing that could be kept in fewer bits");
}

/// Settings of something that is off, of which nobody would notice that they change nothing.
void check_unused(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  for (const char* name : {"lora_alpha", "lora_layers"})
    if (train.integer("lora_rank") == 0 && !train.is_default(name))
      throw config.error(fmt::format("train.{}", name),
                         "there are no low-rank matrices: set train.lora_rank to the rows that they are to have, or "
                         "leave it out");
  if (const std::string& scheme = train.text("quantize"); scheme != "static" && !train.is_default("quantize_batches"))
    throw config.error("train.quantize_batches",
                       fmt::format("they calibrate the scales of train.quantize = \"static\", and it is \"{}\": set "
                                   "that, or leave it out",
                                   scheme));
  if (!train.boolean("inplace_activations")) return;
  const bool mixed = precision_named(train.text("precision")).autocast.has_value();
  if (const std::string why = why_nothing_is_overwritten(config.section("model"), mixed); !why.empty())
    throw config.error("train.inplace_activations", why);
}

void check_lora(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  if (train.real("lora_alpha") == 0)
    throw config.error("train.lora_alpha",
                       "with 0 nothing of what the matrices learn is added: set it above 0, as 16 or twice the rank");
  if (train.text("quantize") != "none")
    throw config.error("train.lora_rank",
                       "train.quantize makes integers of layers that compute by themselves: merge the matrices first");
}

}  // namespace

bool has_low_rank_form(const Options& train) { return !offload_of(train).activations; }

bool is_closed_form_known(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  if (!has_closed_form(config.section("model").text("name")) || !kept_kinds(config).operators.empty()) return false;
  if (train.integer("lora_rank") == 0) return true;
  return has_low_rank_form(train) && train.text("lora_layers").empty();
}

CheckpointPolicy policy_of(const KeptKinds& kinds, std::shared_ptr<OperatorNames> met) {
  std::vector<std::string> names = kinds.operators;
  for (const auto& [word, operators] : groups())
    if (kinds.*(word.kind)) names.insert(names.end(), operators.begin(), operators.end());
  if (names.empty()) return {};
  return [keep = keep_results_of(std::move(names)), met = std::move(met)](std::string_view op) {
    if (met && !met->contains(op)) met->emplace(op);
    return keep(op);
  };
}

void check_reach(const ExperimentConfig& config, std::int64_t blocks, const OperatorNames& met) {
  const Options& train = config.section("train");
  const std::string& model = config.section("model").text("name");
  if (const std::int64_t wanted = train.integer("checkpoint_blocks"); wanted > blocks)
    throw config.error("train.checkpoint_blocks",
                       fmt::format("{} blocks are to run again, and '{}' has {}: say at most so many, or leave it out "
                                   "for all of them",
                                   wanted, model, blocks));
  const KeptKinds kinds = kept_kinds(config);
  const auto refuse = [&](std::string_view word) {
    throw config.error("train.checkpoint_keep",
                       fmt::format("no block of '{}' that runs again computes {}: leave it out; {}", model, word,
                                   met.empty() ? "nothing that they compute can be kept"
                                               : fmt::format("they compute {}", fmt::join(met, ", "))));
  };
  for (const auto& [word, operators] : groups())
    if (kinds.*(word.kind) && std::ranges::none_of(operators, [&](const auto& name) { return met.contains(name); }))
      refuse(word.name);
  for (const std::string& name : kinds.operators)
    if (std::ranges::none_of(met, keep_results_of({name}))) refuse(name);
}

KeptByBlock kept_of(const ActivationForm& form, const KeptKinds& kinds) {
  KeptByBlock kept;
  if (kinds.products) kept = {.elements = form.products, .share = 1 - form.attention_share};
  if (kinds.attention) {
    kept.elements += form.attention;
    kept.share += form.attention_share;
  }
  return kept;
}

std::string leaves_too_much(double budget, std::int64_t blocks, double least) {
  return fmt::format("{:.2f} of the activations is less than what is left where all {} blocks run again, {:.2f}",
                     budget, blocks, least);
}

void check_parallel(const ExperimentConfig& config, const Techniques& techniques) {
  check_pipeline(config);
  const std::int64_t devices = static_cast<std::int64_t>(config.devices.size());
  if (devices < 2) return;
  const auto refuse = [&](const std::string& why) { throw config.error("device.names", why); };
  if (techniques.optimizer_in_backward)
    refuse(is_pipeline(config) ? "train.optimizer_in_backward changes a stage's parameters before its last micro-batch"
                               : "train.optimizer_in_backward changes a parameter before the gradients of the other "
                                 "devices are there");
  if (is_pipeline(config)) return;
  const Options& train = config.section("train");
  const std::int64_t rows = train.integer("batch_size") / techniques.micro_batches;
  if (train.integer("batch_size") > 0 && rows < devices)
    refuse(fmt::format("{} devices, but {} examples at a time: raise train.batch_size", devices, rows));
  if (techniques.chunked_loss > 0 && train.text("parallel_loss") == "first")
    refuse("train.chunked_loss never has all outputs: set train.parallel_loss to \"each\"");
}

Techniques techniques_of(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const Offload offload = offload_of(train);
  Techniques techniques{.micro_batches = train.integer("micro_batches"),
                        .gradients_stay = train.text("zero_grad") == "zero",
                        .optimizer_in_backward = train.boolean("optimizer_in_backward"),
                        .chunked_loss = train.integer("chunked_loss"),
                        .checkpointed_blocks = checkpointed_blocks(train),
                        .checkpoint_keep = kept_kinds(config),
                        .checkpoint_budget = train.real("checkpoint_budget"),
                        .offload_activations = offload.activations,
                        .offload_optimizer = offload.optimizer,
                        .lora = train.integer("lora_rank") > 0,
                        .master_weights = train.boolean("master_weights")};
  check_checkpoint(config);
  check_unused(config);
  if (techniques.optimizer_in_backward) check_optimizer_in_backward(config);
  if (techniques.offload_activations || techniques.offload_optimizer) check_offload(config, techniques);
  check_optimizer_states(config);
  if (techniques.lora)
    check_lora(config);
  else if (train.text("lora_weights") != "float")
    throw config.error("train.lora_weights",
                       "weights of integers do not learn: train.lora_rank puts matrices beside them that do");
  if (techniques.master_weights && size_of(precision_named(train.text("precision")).parameters) != 2)
    throw config.error(
        "train.master_weights",
        fmt::format("with train.precision = \"{}\" parameters are their own masters: it is for \"bfloat16\"",
                    train.text("precision")));
  check_parallel(config, techniques);
  const std::string& model = config.section("model").text("name");
  if (techniques.chunked_loss > 0 && !reads_text(task_of(model))) {
    throw config.error("train.chunked_loss", fmt::format("the model '{}' has no vocabulary, whose logits would be "
                                                         "large: this is for language models",
                                                         model));
  }
  return techniques;
}

}  // namespace tenon::train
