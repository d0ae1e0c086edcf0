// Models on integers: which layers, their weights, and archives of them.
#include <tenon/nn/quantization/quantize.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/quantization/layer.h>
#include <tenon/nn/quantization/read_by_others.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/ops/quantized/products.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace tenon::nn::quantization {
namespace {

struct Place {
  std::string path;
  Module* module;
};

/// Every module once.
std::vector<Place> places_of(const Module& model) {
  std::vector<Place> places{{"", const_cast<Module*>(&model)}};
  std::set<const Module*> known{&model};
  for (const auto& item : model.named_modules({}, /*include_self=*/false)) {
    if (known.insert(item.value().get()).second) places.push_back({item.key(), item.value().get()});
  }
  return places;
}

bool is_integers(Scheme scheme) { return scheme != Scheme::kFloat && scheme != Scheme::kObserved; }

bool suits(const LayerView& view) {
  if (view.is_linear()) return true;
  const Conv2dImpl* conv = view.conv2d();
  return conv != nullptr && !conv->options.padding().is_same() && conv->options.padding_mode().is<enumtype::kZeros>();
}

/// The layers that could be quantized.
std::vector<Place> candidates(const Module& model, bool linear_alone) {
  const std::set<const Module*> left_out = read_by_others(model);
  std::vector<Place> layers = places_of(model);
  std::erase_if(layers, [&](const Place& place) {
    const LayerView view(*place.module);
    return !view || !suits(view) || (linear_alone && !view.is_linear()) || left_out.contains(place.module);
  });
  return layers;
}

/// The layers that are to be quantized. Throws Error where the model is in no state for it.
std::vector<Place> chosen(const char* what, const Module& model, const LayerChoice& choice, bool linear_alone) {
  if (model.is_training()) throw Error(fmt::format("{}: the model is in training mode; call eval() first", what));
  std::vector<Place> layers;
  for (const Place& place : candidates(model, linear_alone)) {
    const Layer* layer = LayerView(*place.module).existing_layer();
    if (!layer && place.module->forward_override() != nullptr)
      throw Error(
          fmt::format("{}: the layer '{}' computes something of its own, such as low-rank matrices beside its "
                      "weight: quantize the model before that",
                      what, place.path));
    if (layer && layer->scheme != Scheme::kFloat)
      throw Error(fmt::format("{}: the layer '{}' is prepared or quantized already", what, place.path));
    if (!choice || choice(place.path, *place.module)) layers.push_back(place);
  }
  if (layers.empty()) throw Error(fmt::format("{}: the model has no layer that can be quantized", what));
  return layers;
}

/// The layer's new weight and the scales beside it.
void set_integers(Module& module, Scheme scheme, const Tensor& values, const Tensor& scales) {
  const LayerView view(module);
  view.set_weight(values);
  module.register_buffer("weight_scale", scales);
  Layer& layer = view.layer();
  layer.scheme = scheme;
  layer.observer.reset();
}

void mark_odd_row(Module& module) { module.register_buffer(kOddRowName, tenon::ones({}, TensorOptions(kBool))); }

Tensor tensor_of(const std::vector<float>& values) {
  return tenon::tensor(std::vector<double>(values.begin(), values.end()), TensorOptions(kFloat64)).to(kFloat32);
}

/// A scale for each output channel, zero points of 0.
Tensor scales_of(const Place& place, const Layer& layer, const Tensor& weight) {
  const std::unique_ptr<Observer> observer = layer.weight_observer();
  observer->observe(weight);
  Parameters found = observer->calculate();
  const bool symmetric = std::ranges::all_of(found.zero_points, [](std::int64_t zero) { return zero == 0; });
  if (observer->options().dtype != kInt8 || !symmetric)
    throw Error(fmt::format("convert: the weight of '{}' is to be int8 with zero points of 0", place.path));
  const auto channels = static_cast<std::size_t>(weight.size(0));
  if (found.scales.size() == 1) found.scales.resize(channels, found.scales[0]);
  if (found.scales.size() != channels)
    throw Error(fmt::format("convert: {} scales for the {} output channels of '{}'", found.scales.size(), channels,
                            place.path));
  return tensor_of(found.scales).to(weight.device());
}

bool has(InputArchive& archive, const std::string& key) {
  Tensor found;
  return archive.try_read(key, found);
}

[[noreturn]] void refuse_sizes(InputArchive& archive, const std::string& key, const Dims& saved, const Dims& here) {
  throw Error(
      fmt::format("nn::quantization::load: '{}' is of ({}) in the archive and of ({}) in this model: make the "
                  "model as it was when it was saved",
                  archive.full_name(key), fmt::join(saved, ", "), fmt::join(here, ", ")));
}

/// Throws Error where the archive's tensors are of other sizes than the module's, in numbers rather than bytes.
void check_sizes(const Place& place, InputArchive& archive) {
  const auto key = [&](const std::string& name) { return place.path.empty() ? name : place.path + "." + name; };
  const LayerView view(*place.module);
  for (const auto& parameter : place.module->named_parameters(/*recurse=*/false)) {
    Tensor found;
    if (!archive.try_read(key(parameter.key()), found))
      continue;  // what a fused norm has lost; others are missed later
    Dims saved = found.sizes();
    Dims here = parameter.value().sizes();
    if (view && view.is_linear() && parameter.key() == "weight") {
      here[1] = view.in_features();
      if (found.scalar_type() == kUInt8 && found.dim() == 2)
        saved[1] = 2 * saved[1] - (has(archive, key(kOddRowName)) ? 1 : 0);
    }
    if (saved != here) refuse_sizes(archive, key(parameter.key()), saved, here);
    Tensor scales;
    if (parameter.key() != "weight" || !archive.try_read(key("weight_scale"), scales)) continue;
    if (scales.dim() < 1 || scales.size(0) != here[0] || (scales.dim() == 2 && here[1] % scales.size(1) != 0))
      throw Error(
          fmt::format("nn::quantization::load: '{}' is of ({}) in the archive, which are no scales for a weight "
                      "of ({}): the file is damaged, or of another program; save the model again",
                      archive.full_name(key("weight_scale")), fmt::join(scales.sizes(), ", "), fmt::join(here, ", ")));
  }
}

/// Makes of the module what the archive's was; its values are loaded afterwards.
void shape_as(const Place& place, InputArchive& archive) {
  const auto key = [&](const char* name) { return place.path.empty() ? name : place.path + "." + name; };
  Module& module = *place.module;
  if (has(archive, key(kFusedName)) && module.forward_override() == nullptr) {
    drop_norm(module);
    make_fused(module);
  }
  const LayerView view(module);
  if (!view) return;
  const auto blank = [&](Dtype dtype) {
    return tenon::empty({0}, TensorOptions(dtype).device(view.weight().device()));
  };
  if (has(archive, key(kFusedReluName))) mark_relu(module, view.layer());
  if (!view.bias().defined() && has(archive, key("bias"))) view.set_bias(blank(kFloat32));
  Tensor scales, zero_point;
  if (!archive.try_read(key("weight_scale"), scales)) return;
  const bool is_static = archive.try_read(key("input_zero_point"), zero_point);
  set_integers(module,
               is_static           ? Scheme::kStatic
               : scales.dim() == 2 ? Scheme::kWeightOnly
                                   : Scheme::kDynamic,
               blank(kInt8), blank(kFloat32));
  if (has(archive, key(kOddRowName))) mark_odd_row(module);
  if (!is_static) return;
  module.register_buffer("input_scale", tenon::empty({}, TensorOptions(kFloat64)));
  module.register_buffer("input_zero_point", tenon::empty({}, TensorOptions(zero_point.scalar_type())));
}

}  // namespace

void prepare(Module& model, const QConfig& config, const LayerChoice& choice) {
  for (const Place& place : chosen("prepare", model, choice, false)) {
    Layer& layer = LayerView(*place.module).layer();
    layer.scheme = Scheme::kObserved;
    layer.observer = config.activation();
    layer.weight_observer = config.weight;
  }
}

std::int64_t release_unobserved(Module& model) {
  std::int64_t released = 0;
  for (const Place& place : places_of(model)) {
    const LayerView view(*place.module);
    if (!view || !view.existing_layer()) continue;
    Layer& layer = view.layer();
    if (layer.scheme != Scheme::kObserved || layer.has_seen) continue;
    layer.scheme = Scheme::kFloat;
    layer.observer.reset();
    ++released;
  }
  return released;
}

void convert(Module& model) {
  NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  struct Change {
    Place place;
    OneParameter input;
    Dtype input_dtype;
    Tensor scales;
  };
  std::vector<Change> changes;
  for (const Place& place : places_of(model)) {
    const LayerView view(*place.module);
    const Layer* layer = view ? view.existing_layer() : nullptr;
    if (!layer || layer->scheme != Scheme::kObserved) continue;
    const Parameters input = layer->observer->calculate();
    changes.push_back({place,
                       {input.scales.at(0), input.zero_points.at(0)},
                       layer->observer->options().dtype,
                       scales_of(place, *layer, view.weight())});
  }
  if (changes.empty()) throw Error("convert: no layer is prepared; call prepare() and run the model on examples");
  for (const auto& [place, input, dtype, scales] : changes) {
    const LayerView view(*place.module);
    const Tensor zeros = tenon::zeros({scales.size(0)}, TensorOptions(kInt32).device(scales.device()));
    set_integers(*place.module, Scheme::kStatic,
                 quantized::quantize_per_channel(view.weight(), scales, zeros, 0, kInt8), scales);
    place.module->register_buffer("input_scale", tenon::full({}, input.scale, TensorOptions(kFloat64)));
    place.module->register_buffer("input_zero_point", tenon::full({}, input.zero_point, TensorOptions(dtype)));
  }
}

void quantize_dynamic(Module& model, const LayerChoice& choice) {
  NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  for (const Place& place : chosen("quantize_dynamic", model, choice, true)) {
    const auto [values, scales] = quantized::quantize_weight(LayerView(*place.module).weight());
    set_integers(*place.module, Scheme::kDynamic, values, scales);
  }
}

void quantize_weights(Module& model, int bits, std::int64_t group, const LayerChoice& choice) {
  if (group < 1)
    throw Error(
        fmt::format("quantize_weights: a scale for each {} weights: a group is 1 or more, and 64 is usual; one "
                    "that a row cannot be divided into makes a group of the row",
                    group));
  NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kParameter);
  for (const Place& place : chosen("quantize_weights", model, choice, true)) {
    const Tensor& weight = LayerView(*place.module).weight();
    const std::int64_t row = weight.size(1);
    const bool fits = group > 0 && row % group == 0 && group % 2 == 0;
    const auto packed = quantized::pack_weight(weight, bits, bits == 4 && fits ? group : 0);
    set_integers(*place.module, Scheme::kWeightOnly, packed.values, packed.scales);
    if (bits == 4 && row % 2 != 0) mark_odd_row(*place.module);
  }
}

void load(Module& model, InputArchive& archive) {
  PurposeGuard purpose(Purpose::kParameter);
  const std::vector<Place> places = places_of(model);
  for (const Place& place : places) check_sizes(place, archive);  // before anything changes
  for (const Place& place : places) shape_as(place, archive);
  model.load(archive);
}

void load(Module& model, const std::string& path) {
  InputArchive archive;
  archive.load_from(path);
  load(model, archive);
}

std::size_t bytes_of(const Module& model) {
  std::set<const void*> known;
  std::size_t bytes = 0;
  for (const auto& tensors : {model.parameters(), model.buffers()}) {
    for (const Tensor& tensor : tensors) {
      if (known.insert(&tensor.impl()).second)
        bytes += static_cast<std::size_t>(tensor.numel()) * size_of(tensor.scalar_type());
    }
  }
  return bytes;
}

std::int64_t parameters_of(const Module& model) {
  std::int64_t count = 0;
  for (const Tensor& parameter : model.parameters()) count += parameter.numel();
  for (const Place& place : places_of(model)) {
    const LayerView view(*place.module);
    if (!view || !view.is_linear() || view.weight().scalar_type() != kUInt8) continue;  // one that is packed
    count += view.weight().size(0) * view.in_features() - view.weight().numel();
  }
  return count;
}

std::int64_t quantizable_layers(const Module& model, bool linear_alone) {
  return static_cast<std::int64_t>(candidates(model, linear_alone).size());
}

std::int64_t quantized_layers(const Module& model) {
  return std::ranges::count_if(places_of(model), [](const Place& place) {
    const LayerView view(*place.module);
    const Layer* layer = view ? view.existing_layer() : nullptr;
    return layer && is_integers(layer->scheme);
  });
}

}  // namespace tenon::nn::quantization
