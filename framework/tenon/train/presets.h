// Published sizes of models: what `model.preset` stands for.
#pragma once

#include <tenon/core/options.h>

#include <utility>
#include <vector>

namespace tenon::train {

struct Preset {
  const char* name;
  std::vector<std::pair<const char*, OptionValue>> settings;  ///< of [model]
};
using Presets = std::vector<Preset>;

// What a row of model.cpp names; sources stand at their definitions.
Presets bert_presets();
Presets ddpm_presets();
Presets gpt2_presets();
Presets latent_diffusion_presets();
Presets llama_presets();
Presets moe_presets();
Presets resnet_presets();
Presets vit_presets();

}  // namespace tenon::train
