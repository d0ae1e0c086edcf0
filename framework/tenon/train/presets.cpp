// The table of published sizes.
#include <tenon/train/presets.h>

#include <cstdint>
#include <string>

namespace tenon::train {
namespace {

using Settings = std::vector<std::pair<const char*, OptionValue>>;
using Integer = std::int64_t;

/// Radford et al., 2019: 50,257 pairs of bytes, 1,024 positions.
Settings gpt2(Integer hidden, Integer layers, Integer heads) {
  return {{"hidden", hidden},
          {"layers", layers},
          {"heads", heads},
          {"vocabulary", Integer{50257}},
          {"positions", Integer{1024}},
          {"tied", true},
          {"activation", std::string("gelu")}};
}

/// Devlin et al., 2018: 30,522 pieces of words, 512 positions.
Settings bert(Integer hidden, Integer layers, Integer heads) {
  return {{"hidden", hidden},
          {"layers", layers},
          {"heads", heads},
          {"vocabulary", Integer{30522}},
          {"positions", Integer{512}},
          {"activation", std::string("gelu")}};
}

/// Dosovitskiy et al., 2020: pictures of 224 by 224 in three colours, 1,000 classes.
Settings vit(Integer hidden, Integer layers, Integer heads, Integer patch) {
  return {{"hidden", hidden},
          {"layers", layers},
          {"heads", heads},
          {"patch", patch},
          {"image_size", Integer{224}},
          {"channels", Integer{3}},
          {"classes", Integer{1000}},
          {"activation", std::string("gelu")}};
}

/// He et al., 2015: three colours, 1,000 classes; a picture may have any size.
Settings imagenet() {
  return {{"stem", std::string("imagenet")}, {"channels", Integer{3}}, {"classes", Integer{1000}}};
}

/// Ho et al., 2020, appendix B.
Settings ddpm(Integer side, std::string multipliers) {
  return {{"hidden", Integer{128}},
          {"layers", Integer{2}},
          {"multipliers", std::move(multipliers)},
          {"attention_sides", std::string("16")},
          {"image_size", side},
          {"channels", Integer{3}}};
}

/// Rombach et al., 2022, as Stable Diffusion 1.1 to 1.5 were published: pictures of 512 by 512 as 64 by 64 of an
/// autoencoder, texts of CLIP's encoder.
Settings stable_diffusion_1() {
  return {{"hidden", Integer{320}}, {"layers", Integer{2}},       {"multipliers", std::string("1,2,4,4")},
          {"heads", Integer{8}},    {"text_width", Integer{768}}, {"image_size", Integer{64}},
          {"channels", Integer{4}}};
}

/// Grattafiori et al., 2024: the vocabulary of Llama 3, keys and values in eight heads. Llama 3.1 (8B, 70B) and 3.2
/// (1B, 3B) were stretched to 131,072 positions by factors of their own.
Settings llama(Integer hidden, Integer layers, Integer heads, Integer intermediate, bool is_3_2) {
  return {{"hidden", hidden},
          {"layers", layers},
          {"heads", heads},
          {"kv_heads", Integer{8}},
          {"intermediate", intermediate},
          {"vocabulary", Integer{128256}},
          {"tied", is_3_2},
          {"rotary_factor", is_3_2 ? 32.0 : 8.0}};
}

/// Jiang et al., 2024: Mixtral.
Settings mixtral_8x7b() {
  return {{"hidden", Integer{4096}},         {"layers", Integer{32}},          {"heads", Integer{32}},
          {"kv_heads", Integer{8}},          {"intermediate", Integer{14336}}, {"experts", Integer{8}},
          {"experts_per_token", Integer{2}}, {"vocabulary", Integer{32000}},   {"tied", false}};
}

}  // namespace

Presets vit_presets() {
  return {{"B/16", vit(768, 12, 12, 16)}, {"L/16", vit(1024, 24, 16, 16)}, {"H/14", vit(1280, 32, 16, 14)}};
}
Presets resnet_presets() { return {{"imagenet", imagenet()}}; }
Presets ddpm_presets() { return {{"cifar10", ddpm(32, "1,2,2,2")}, {"celebahq256", ddpm(256, "1,1,2,2,4,4")}}; }
Presets latent_diffusion_presets() { return {{"sd1.5", stable_diffusion_1()}}; }
Presets bert_presets() { return {{"base", bert(768, 12, 12)}, {"large", bert(1024, 24, 16)}}; }
Presets gpt2_presets() {
  return {{"small", gpt2(768, 12, 12)},
          {"medium", gpt2(1024, 24, 16)},
          {"large", gpt2(1280, 36, 20)},
          {"xl", gpt2(1600, 48, 25)}};
}
Presets llama_presets() {
  return {{"1B", llama(2048, 16, 32, 8192, true)},
          {"3B", llama(3072, 28, 24, 8192, true)},
          {"8B", llama(4096, 32, 32, 14336, false)},
          {"70B", llama(8192, 80, 64, 28672, false)}};
}
Presets moe_presets() { return {{"8x7B", mixtral_8x7b()}}; }

}  // namespace tenon::train
