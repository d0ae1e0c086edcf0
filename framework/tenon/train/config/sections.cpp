// The settings of a training run: names, types, ranges, defaults, one line of help each. Declared in run_experiment.h.
#include <tenon/profiler/averages.h>
#include <tenon/train/input/data_set.h>
#include <tenon/train/model.h>
#include <tenon/train/optimizers.h>
#include <tenon/train/quantized_inference.h>
#include <tenon/train/run_experiment.h>
#include <tenon/train/schedules.h>
#include <tenon/train/serve/kv_cache.h>
#include <tenon/train/step/mixed_precision.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace tenon {

namespace {

using train::kNoPreset;
using train::preset_list;
using train::preset_names;

constexpr std::int64_t kMany = 1'000'000'000;

SectionSpec model_section() {
  return {
      "model",
      "what is trained",
      {OptionSpec::text("name", train::model_names().front(), "the model").one_of(train::model_names()),
       OptionSpec::integer("hidden", 256,
                           "width of hidden layers (mlp), of the embedding (language models, vit), channels (unet, "
                           "ddpm, latent-diffusion)")
           .range(std::int64_t{1}, std::int64_t{65536}),
       OptionSpec::integer(
           "layers", 2, "hidden layers, recurrent layers, transformer blocks, blocks a level (ddpm, latent-diffusion)")
           .range(std::int64_t{1}, std::int64_t{1024}),
       OptionSpec::integer("heads", 4, "attention heads (bert, gpt, latent-diffusion, llama, moe, vit)")
           .range(std::int64_t{1}, std::int64_t{1024}),
       OptionSpec::integer("kv_heads", 0,
                           "heads of keys and values, each for several of queries (llama, moe); 0 = heads")
           .range(std::int64_t{0}, std::int64_t{1024}),
       OptionSpec::integer("intermediate", 0, "width of the gated perceptrons (llama, moe); 0 = four times hidden")
           .range(std::int64_t{0}, std::int64_t{1 << 20}),
       OptionSpec::real("rotary_factor", 1.0, "slow rotations are slower by it, as in Llama 3.1 and 3.2 (llama)")
           .range(1.0, 1e6),
       OptionSpec::integer("experts", 8, "perceptrons of a block, of which a router chooses (moe)")
           .range(std::int64_t{1}, std::int64_t{1024}),
       OptionSpec::integer("experts_per_token", 2, "how many it chooses for each symbol (moe)")
           .range(std::int64_t{1}, std::int64_t{1024}),
       OptionSpec::real("balance", 0.02, "what an uneven use of the experts adds to the loss (moe)").range(0.0, 1e3),
       OptionSpec::text("preset", kNoPreset,
                        fmt::format("published sizes, instead of the settings that say them: {}", preset_list()))
           .one_of(preset_names()),
       OptionSpec::integer("positions", 0, "learned positions (bert, gpt, gpt2); 0 = context")
           .range(std::int64_t{0}, std::int64_t{1 << 24}),
       OptionSpec::integer("context", 128, "characters that a language model sees at once")
           .range(std::int64_t{1}, std::int64_t{65536}),
       OptionSpec::integer("vocabulary", 0, "symbols that a language model has room for; 0 = those of the text")
           .range(std::int64_t{0}, std::int64_t{1 << 24}),
       OptionSpec::boolean("tied", true, "the table of symbols is the output layer too (gpt, llama, lstm-lm, moe)"),
       OptionSpec::text("activation", "gelu", "of the transformer's perceptrons (bert, gpt, gpt2, vit)")
           .one_of({"gelu", "relu"}),
       OptionSpec::integer("patch", 4, "side of a patch (vit)").range(std::int64_t{1}, std::int64_t{1024}),
       OptionSpec::text("stem", "small",
                        "first layers (resnet18, resnet50): 3 by 3 for small pictures, or those for ImageNet")
           .one_of({"small", "imagenet"}),
       OptionSpec::text("multipliers", "1,2,2", "channels of each level, in units of hidden (ddpm, latent-diffusion)"),
       OptionSpec::text("attention_sides", "16", "sides of a picture at which there is attention (ddpm)"),
       OptionSpec::integer("text_width", 64, "features of a symbol of the text that attention reads (latent-diffusion)")
           .range(std::int64_t{1}, std::int64_t{65536}),
       OptionSpec::integer("channels", 0, "grey values stand in so many channels; 0 = one")
           .range(std::int64_t{0}, std::int64_t{1024}),
       OptionSpec::integer("classes", 0, "classes that a model has room for; 0 = those of the pictures")
           .range(std::int64_t{0}, std::int64_t{1 << 24}),
       OptionSpec::integer("image_size", 0, "pictures are enlarged to this side by repeating pixels; 0 leaves them")
           .range(std::int64_t{0}, std::int64_t{4096}),
       OptionSpec::real("dropout", 0.0, "probability of dropping an activation").range(0.0, 1.0)},
      {}};
}

SectionSpec data_section() {
  std::vector<std::string> names, paths;
  for (const train::DataSet& set : train::data_sets()) {
    names.emplace_back(set.name);
    paths.push_back(fmt::format("{} ({})", set.path, set.name));
  }
  return {
      "data",
      "what it is trained on",
      {OptionSpec::text("name", names.front(), "the data set").one_of(names),
       OptionSpec::text("path", "",
                        fmt::format("where its files are: {}; empty: the usual place", fmt::join(paths, ", "))),
       OptionSpec::text("unit", "character", "one symbol of a text: a character of UTF-8, or a byte")
           .one_of({"character", "byte"}),
       OptionSpec::integer("limit", 0, "how many training examples (pictures, windows of text) are used; 0 = all")
           .range(std::int64_t{0}, kMany),
       OptionSpec::integer("test_limit", 0, "how many test examples are used; 0 = all").range(std::int64_t{0}, kMany)},
      {},
      {"path"}};
}

// Long: a row for each setting.
SectionSpec train_section() {
  return {
      "train",
      "how it is trained",
      {OptionSpec::integer("epochs", 1, "passes over the data").range(std::int64_t{1}, std::int64_t{1'000'000}),
       OptionSpec::integer("max_steps", 0, "stop after so many steps, within the epochs; 0 = no limit")
           .range(std::int64_t{0}, kMany),
       OptionSpec::integer("batch_size", 128, "examples a step; auto: the most for which there is memory")
           .range(std::int64_t{1}, std::int64_t{1 << 24})
           .or_word("auto"),
       OptionSpec::integer("test_batch_size", 1000, "examples at once when testing")
           .range(std::int64_t{1}, std::int64_t{1 << 24}),
       OptionSpec::integer("micro_batches", 1, "a batch is computed in so many parts whose gradients add up")
           .range(std::int64_t{1}, std::int64_t{1 << 20}),
       OptionSpec::text("parallel", "data",
                        "with device.names: each device has the model and a part of the batch (data), or a part of the "
                        "model that micro-batches pass through (pipeline)")
           .one_of({"data", "pipeline"}),
       OptionSpec::text("pipeline_schedule", "1f1b",
                        "order of a pipeline's passes: all forward ones first (gpipe), or one backward for each "
                        "forward one as soon as it is full (1f1b)")
           .one_of({"gpipe", "1f1b"}),
       OptionSpec::text("pipeline_balance", "",
                        "layers of each stage of a pipeline, with commas between them; empty: about as many parameters "
                        "in each"),
       OptionSpec::integer("tensor_parallel", 1,
                           "with distributed.name: so many ranks divide the layers of each block among them, each "
                           "computing its part of every example")
           .range(std::int64_t{1}, std::int64_t{4096}),
       OptionSpec::text("parallel_loss", "first",
                        "with device.names: the loss of all outputs on the first device, or of each device's there")
           .one_of({"first", "each"}),
       OptionSpec::text("optimizer", "adamw", "the optimiser").one_of(train::optimizer_names()),
       OptionSpec::real("lr", 1e-3, "learning rate").range(0.0, 1e6),
       OptionSpec::real("momentum", 0.9, "of sgd and rmsprop").range(0.0, 1.0),
       OptionSpec::real("weight_decay", 0.0, "pulls parameters to zero").range(0.0, 1e6),
       OptionSpec::text("schedule", train::schedule_names().front(), "course of the learning rate")
           .one_of(train::schedule_names()),
       OptionSpec::integer("schedule_warmup", 0, "steps over which the learning rate rises from zero")
           .range(std::int64_t{0}, kMany),
       OptionSpec::real("clip_grad_norm", 0.0, "gradients are scaled down to this norm; 0 = never").range(0.0, 1e9),
       OptionSpec::text("precision", "float32",
                        "of parameters, activations and the optimiser's state; mixed: parameters and state in float32, "
                        "products and what they keep in 16 bits, for float16 with a scaled loss")
           .one_of(train::precision_names()),
       OptionSpec::boolean("master_weights", false,
                           "with precision = bfloat16 the optimiser works on copies of the parameters in float32"),
       OptionSpec::text("quantize", "none",
                        "when training has ended the model is made integers of and tested before and after: static "
                        "(int8, calibrated), dynamic (int8 linear layers), or weights of linear layers alone")
           .one_of(train::quantizations()),
       OptionSpec::integer("quantize_batches", 8, "training batches that calibrate (quantize = static)")
           .range(std::int64_t{1}, kMany),
       OptionSpec::integer("seed", 47, "of initial parameters, order of the data and dropout")
           .range(std::int64_t{0}, std::int64_t{1} << 62),
       OptionSpec::integer("threads", 0, "threads of the host that a kernel may use; 0 leaves the device's setting")
           .range(std::int64_t{0}, std::int64_t{4096}),
       OptionSpec::boolean("checkpoint", false,
                           "recompute the activations of a block in backward instead of keeping them"),
       OptionSpec::integer("checkpoint_blocks", 0, "with checkpoint, only the first so many blocks; 0 = all")
           .range(std::int64_t{0}, std::int64_t{1} << 20),
       OptionSpec::text("checkpoint_keep", "none",
                        "with checkpoint, operators whose results blocks keep and need not compute again: products, "
                        "attention, convolutions, or operators by name (gelu, layer_norm …), with commas between them; "
                        "none"),
       OptionSpec::real("checkpoint_budget", 0.0,
                        "with checkpoint, as few blocks as leave this share of the peak of activations; 0 = no budget")
           .range(0.0, 1.0),
       OptionSpec::size("checkpoint_memory", 0,
                        "with checkpoint, as few blocks as keep what the run reserves within so many bytes; 0 = no "
                        "such budget"),
       OptionSpec::boolean("inplace_activations", false, "activations overwrite their inputs"),
       OptionSpec::text("zero_grad", "none", "after a step gradients are given back (none) or filled with zeros (zero)")
           .one_of({"none", "zero"}),
       OptionSpec::integer("chunked_loss", 0,
                           "the output layer of a language model and its loss are computed in so many parts, whose "
                           "logits are not kept; 0 = as a whole")
           .range(std::int64_t{0}, std::int64_t{1 << 20}),
       OptionSpec::boolean("optimizer_in_backward", false,
                           "backward updates each parameter when its gradient is there, which then goes at once"),
       OptionSpec::text(
           "optimizer_states", "full",
           "what the optimiser remembers of parameters: in their own dtype (full), or where they have 4096 "
           "values and more in 8 bits by blocks")
           .one_of({"full", "8bit"}),
       OptionSpec::integer(
           "lora_rank", 0,
           "parameters stay as they are, and beside linear layers low-rank matrices learn (LoRA), of so "
           "many rows; 0 = none")
           .range(std::int64_t{0}, std::int64_t{65536}),
       OptionSpec::real("lora_alpha", 16.0, "what they add is multiplied by lora_alpha / lora_rank").range(0.0, 1e6),
       OptionSpec::text("lora_weights", "float",
                        "what the weights that stay as they are consist of, but for the output layer's: floats, or "
                        "integers (QLoRA)")
           .one_of({"float", "int8", "int4"}),
       OptionSpec::text("lora_layers", "",
                        "linear layers whose path has this in it; empty: all, the output layer 'head' never"),
       OptionSpec::text("offload", "none",
                        "what waits in host memory: nothing, the activations that are saved for backward, what the "
                        "optimiser remembers until a parameter's update, or both")
           .one_of({"none", "activations", "optimizer", "both"}),
       OptionSpec::boolean("eval_no_grad", true, "testing records no history"),
       OptionSpec::boolean("shuffle", true, "another order of the examples in each epoch"),
       OptionSpec::integer("warmup_steps", 10, "steps before device calls are counted").range(std::int64_t{0}, kMany),
       OptionSpec::text("save", "", "file for the state of the run when it ends; empty: none"),
       OptionSpec::integer("save_every", 0,
                           "steps after which a run's folder gets its state, for tenon run --resume; 0 = only when it "
                           "is interrupted")
           .range(std::int64_t{0}, kMany),
       OptionSpec::text("resume", "", "file of a run to go on with"),
       OptionSpec::integer("stop_at", 0, "end this run after so many steps in all, to be resumed; 0 = at the end")
           .range(std::int64_t{0}, kMany)},
      {},
      {"save", "resume"}};
}

SectionSpec serve_section() {
  const auto length = [](const char* name, std::int64_t value, const char* help) {
    return OptionSpec::integer(name, value, help).range(std::int64_t{1}, std::int64_t{1} << 24);
  };
  return {"serve",
          "requests that a language model serves, instead of training",
          {OptionSpec::integer("requests", 0, "how many come; 0 = none: the model is trained")
               .range(std::int64_t{0}, std::int64_t{1'000'000}),
           OptionSpec::real("arrivals", 0.5, "requests that arrive in a step, on average").range(1e-6, 1e6),
           length("prompt_min", 16, "shortest prompt"), length("prompt_max", 64, "longest prompt"),
           length("output_min", 16, "fewest symbols that a request is given"),
           length("output_max", 64, "most symbols that a request is given"),
           OptionSpec::text("lengths", "log-uniform", "how lengths are drawn from their ranges")
               .one_of({"uniform", "log-uniform"}),
           OptionSpec::text("cache", train::cache_kinds().front(), "how keys and values are kept")
               .one_of(train::cache_kinds()),
           OptionSpec::integer("page", 16, "positions of a page (paged)").range(std::int64_t{1}, std::int64_t{65536}),
           OptionSpec::size("kv_memory", 0, "what all caches may reserve together; 0 = what the device has"),
           OptionSpec::integer("most_at_once", 0, "requests that run at once; 0 = as many as fit")
               .range(std::int64_t{0}, std::int64_t{1'000'000}),
           OptionSpec::integer("seed", 47, "of arrivals, lengths and prompts")
               .range(std::int64_t{0}, std::int64_t{1} << 62)},
          {}};
}

SectionSpec profile_section() {
  const auto steps = [](const char* name, std::int64_t value, std::int64_t least, const char* help) {
    return OptionSpec::integer(name, value, help).range(least, kMany);
  };
  return {
      "profile",
      "which operators some steps call, how long they take and what memory they take: profile.txt (tables), "
      "profile.chrome.json (for Perfetto and tenon replay), profile.folded (for flame graphs)",
      {OptionSpec::boolean("enabled", false, "whether steps are recorded"),
       steps("skip_first", 0, 0, "steps before the first cycle"),
       steps("wait", 1, 0, "of a cycle, the steps that pass by"),
       steps("warmup", 1, 0, "the steps that are recorded and thrown away"),
       steps("active", 3, 1, "the steps that are recorded"), steps("repeat", 1, 0, "how many cycles; 0 = without end"),
       OptionSpec::boolean("shapes", false, "rows by the shapes of the operands too"),
       OptionSpec::boolean("memory", true, "what operators allocate and free"),
       OptionSpec::boolean("stacks", false, "where they were called: a table by call site, frames in the files (slow)"),
       OptionSpec::boolean("flops", false, "floating-point operations"),
       OptionSpec::text("sort_by", "self_cpu_time_total", "what the tables are sorted by, the largest first")
           .one_of(profiler::sort_words()),
       OptionSpec::integer("row_limit", 100, "rows of a table; -1 = all").range(std::int64_t{-1}, kMany)},
      {}};
}

}  // namespace

std::vector<SectionSpec> training_sections() {
  return {model_section(), data_section(), train_section(), serve_section(), profile_section()};
}

}  // namespace tenon
