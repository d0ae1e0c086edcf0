// Layers whose weights another module reads: what stands for their forward is not asked.
#pragma once

#include <tenon/nn/modules/sequence/multihead_attention.h>

#include <set>

namespace tenon::nn {

/// The output projection of each MultiheadAttention in the model.
inline std::set<const Module*> read_by_others(const Module& model) {
  std::set<const Module*> layers;
  for (const auto& module : model.modules()) {
    if (auto* attention = module->as<MultiheadAttentionImpl>()) layers.insert(attention->out_proj.get());
  }
  return layers;
}

}  // namespace tenon::nn
