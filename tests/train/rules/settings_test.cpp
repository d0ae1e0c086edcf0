// What each setting of a run is when nothing is said of it, and what may be said.
#include <tenon/core/options.h>
#include <tenon/train/run_experiment.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

namespace tenon::test {
namespace {

std::string shown(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>)
          return fmt::format("\"{}\"", held);
        else
          return fmt::format("{}", held);
      },
      value);
}

/// A line for each number and each switch: "hidden = 256 (1 to 65536)". Of texts those with a choice.
std::string numbers_of(const std::string& name) {
  std::string lines;
  for (const SectionSpec& section : training_sections()) {
    if (section.name != name) continue;
    for (const OptionSpec& option : section.options) {
      if (option.type == OptionType::kText) continue;
      lines += fmt::format("{} = {}", option.name, shown(option.default_value));
      if (option.minimum) lines += fmt::format(" ({} to {})", shown(*option.minimum), shown(*option.maximum));
      if (!option.choices.empty()) lines += fmt::format(" or {}", fmt::join(option.choices, ", "));
      lines += '\n';
    }
  }
  return lines;
}

std::string texts_of(const std::string& name) {
  std::string lines;
  for (const SectionSpec& section : training_sections()) {
    if (section.name != name) continue;
    for (const OptionSpec& option : section.options) {
      if (option.type != OptionType::kText) continue;
      lines += fmt::format("{} = {}\n", option.name, shown(option.default_value));
    }
  }
  return lines;
}

TEST(Settings, OfTheModelHaveTheseDefaultsAndBounds) {
  EXPECT_EQ(numbers_of("model"),
            "hidden = 256 (1 to 65536)\n"
            "layers = 2 (1 to 1024)\n"
            "heads = 4 (1 to 1024)\n"
            "kv_heads = 0 (0 to 1024)\n"
            "intermediate = 0 (0 to 1048576)\n"
            "rotary_factor = 1 (1 to 1000000)\n"
            "experts = 8 (1 to 1024)\n"
            "experts_per_token = 2 (1 to 1024)\n"
            "balance = 0.02 (0 to 1000)\n"
            "positions = 0 (0 to 16777216)\n"
            "context = 128 (1 to 65536)\n"
            "vocabulary = 0 (0 to 16777216)\n"
            "tied = true\n"
            "patch = 4 (1 to 1024)\n"
            "text_width = 64 (1 to 65536)\n"
            "channels = 0 (0 to 1024)\n"
            "classes = 0 (0 to 16777216)\n"
            "image_size = 0 (0 to 4096)\n"
            "dropout = 0 (0 to 1)\n");
  EXPECT_EQ(texts_of("model"),
            "name = \"mlp\"\npreset = \"none\"\nactivation = \"gelu\"\nstem = \"small\"\nmultipliers = \"1,2,2\"\n"
            "attention_sides = \"16\"\n");
}

TEST(Settings, OfTheDataHaveTheseDefaultsAndBounds) {
  EXPECT_EQ(numbers_of("data"), "limit = 0 (0 to 1000000000)\ntest_limit = 0 (0 to 1000000000)\n");
  EXPECT_EQ(texts_of("data"), "name = \"fashion-mnist\"\npath = \"\"\nunit = \"character\"\n");
}

TEST(Settings, OfTrainingHaveTheseDefaultsAndBounds) {
  EXPECT_EQ(numbers_of("train"),
            "epochs = 1 (1 to 1000000)\n"
            "max_steps = 0 (0 to 1000000000)\n"
            "batch_size = 128 (1 to 16777216) or auto\n"
            "test_batch_size = 1000 (1 to 16777216)\n"
            "micro_batches = 1 (1 to 1048576)\n"
            "tensor_parallel = 1 (1 to 4096)\n"
            "lr = 0.001 (0 to 1000000)\n"
            "momentum = 0.9 (0 to 1)\n"
            "weight_decay = 0 (0 to 1000000)\n"
            "schedule_warmup = 0 (0 to 1000000000)\n"
            "clip_grad_norm = 0 (0 to 1000000000)\n"
            "master_weights = false\n"
            "quantize_batches = 8 (1 to 1000000000)\n"
            "seed = 47 (0 to 4611686018427387904)\n"
            "threads = 0 (0 to 4096)\n"
            "checkpoint = false\n"
            "checkpoint_blocks = 0 (0 to 1048576)\n"
            "checkpoint_budget = 0 (0 to 1)\n"
            "checkpoint_memory = 0\n"
            "inplace_activations = false\n"
            "chunked_loss = 0 (0 to 1048576)\n"
            "optimizer_in_backward = false\n"
            "lora_rank = 0 (0 to 65536)\n"
            "lora_alpha = 16 (0 to 1000000)\n"
            "eval_no_grad = true\n"
            "shuffle = true\n"
            "warmup_steps = 10 (0 to 1000000000)\n"
            "save_every = 0 (0 to 1000000000)\n"
            "stop_at = 0 (0 to 1000000000)\n");
  EXPECT_EQ(texts_of("train"),
            "parallel = \"data\"\npipeline_schedule = \"1f1b\"\npipeline_balance = \"\"\nparallel_loss = \"first\"\n"
            "optimizer = \"adamw\"\nschedule = \"constant\"\nprecision = \"float32\"\nquantize = \"none\"\n"
            "checkpoint_keep = \"none\"\nzero_grad = \"none\"\noptimizer_states = \"full\"\nlora_weights = \"float\"\n"
            "lora_layers = \"\"\noffload = \"none\"\nsave = \"\"\nresume = \"\"\n");
}

TEST(Settings, OfServingHaveTheseDefaultsAndBounds) {
  EXPECT_EQ(numbers_of("serve"),
            "requests = 0 (0 to 1000000)\n"
            "arrivals = 0.5 (1e-06 to 1000000)\n"
            "prompt_min = 16 (1 to 16777216)\n"
            "prompt_max = 64 (1 to 16777216)\n"
            "output_min = 16 (1 to 16777216)\n"
            "output_max = 64 (1 to 16777216)\n"
            "page = 16 (1 to 65536)\n"
            "kv_memory = 0\n"
            "most_at_once = 0 (0 to 1000000)\n"
            "seed = 47 (0 to 4611686018427387904)\n");
}

TEST(Settings, OfAProfileHaveTheseDefaultsAndBounds) {
  EXPECT_EQ(numbers_of("profile"),
            "enabled = false\n"
            "skip_first = 0 (0 to 1000000000)\n"
            "wait = 1 (0 to 1000000000)\n"
            "warmup = 1 (0 to 1000000000)\n"
            "active = 3 (1 to 1000000000)\n"
            "repeat = 1 (0 to 1000000000)\n"
            "shapes = false\n"
            "memory = true\n"
            "stacks = false\n"
            "flops = false\n"
            "row_limit = 100 (-1 to 1000000000)\n");
}

}  // namespace
}  // namespace tenon::test
