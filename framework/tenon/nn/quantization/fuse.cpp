// Fusing of layers with what follows them.
#include <tenon/nn/quantization/fuse.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/activation.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/quantization/layer.h>
#include <tenon/ops/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

namespace tenon::nn::quantization {
namespace {

/// A group, resolved.
struct Fusion {
  std::shared_ptr<Module> layer, norm, relu;
};

bool is_norm_of(const Module& layer, const Module& norm) {
  if (layer.as<Conv2dImpl>() != nullptr) return norm.as<BatchNorm2dImpl>() != nullptr;
  if (layer.as<Conv3dImpl>() != nullptr) return norm.as<BatchNorm3dImpl>() != nullptr;
  return norm.as<BatchNorm1dImpl>() != nullptr;
}

/// Calls use(norm) with its own type.
template <class Use>
void with_norm(Module& module, const Use& use) {
  if (auto* one = module.as<BatchNorm1dImpl>()) use(*one);
  if (auto* two = module.as<BatchNorm2dImpl>()) use(*two);
  if (auto* three = module.as<BatchNorm3dImpl>()) use(*three);
}

bool has_statistics(Module& module) {
  bool has = false;
  with_norm(module, [&](auto& norm) { has = norm.running_mean.defined() && norm.running_var.defined(); });
  return has;
}

Fusion resolve(const OrderedDict<std::string, std::shared_ptr<Module>>& modules, const Group& group) {
  const auto fail = [&](const std::string& why) {
    return Error(fmt::format("fuse_modules: {}: {}", fmt::join(group, ", "), why));
  };
  std::vector<std::shared_ptr<Module>> found;
  for (const std::string& path : group) {
    if (!modules.contains(path)) throw fail(fmt::format("there is no module '{}'", path));
    found.push_back(modules[path]);
    if (found.back()->is_training()) throw fail("the model is in training mode; call eval() first");
  }
  if (found.empty() || !LayerView(*found[0])) throw fail("a group begins with a convolution or a Linear");
  Fusion fusion{.layer = found[0]};
  std::size_t next = 1;
  if (next < found.size() && is_norm_of(*fusion.layer, *found[next])) {
    fusion.norm = found[next++];
    if (!has_statistics(*fusion.norm)) throw fail("the batch norm has no running statistics");
  }
  if (next < found.size() && found[next]->as<ReLUImpl>() != nullptr) fusion.relu = found[next++];
  if (next != found.size() || next == 1)
    throw fail("a layer is followed by a batch norm of its dimensions, a ReLU, or both");
  return fusion;
}

/// A ReLU that several places share becomes nothing in all of them.
void check_shared(const OrderedDict<std::string, std::shared_ptr<Module>>& modules,
                  const std::vector<Fusion>& fusions) {
  std::map<const Module*, int> left;
  for (const auto& item : modules) ++left[item.value().get()];
  for (const Fusion& fusion : fusions) {
    for (const auto& module : {fusion.layer, fusion.norm, fusion.relu}) --left[module.get()];
  }
  for (const Fusion& fusion : fusions) {
    for (const auto& module : {fusion.layer, fusion.norm, fusion.relu}) {
      if (module != nullptr && left[module.get()] != 0)
        throw Error(
            "fuse_modules: a module stands in several places of the model, and not once in each of these groups");
    }
  }
}

/// (w x + b - mean) * factor + shift = (w factor) x + (b - mean) * factor + shift.
void fold(const LayerView& layer, Module& module) {
  PurposeGuard purpose(Purpose::kParameter);
  with_norm(module, [&](auto& norm) {
    Tensor factor = norm.running_var.add(norm.options.eps()).rsqrt();
    if (norm.weight.defined()) factor = factor.mul(norm.weight);
    Tensor bias = layer.bias().defined() ? layer.bias().sub(norm.running_mean) : norm.running_mean.neg();
    bias = bias.mul(factor);
    if (norm.bias.defined()) bias = bias.add(norm.bias);
    Dims beside = Dims::filled(static_cast<int>(layer.weight().dim()), 1);
    beside[0] = -1;
    layer.set_weight(layer.weight().mul(factor.view(beside)).detach());
    layer.set_bias(bias.detach());
    drop_norm(norm);
  });
}

void apply(const Fusion& fusion) {
  const LayerView view(*fusion.layer);
  Layer& layer = view.layer();
  if (fusion.norm) {
    fold(view, *fusion.norm);
    make_fused(*fusion.norm);
  }
  if (fusion.relu) {
    mark_relu(*fusion.layer, layer);
    if (fusion.relu->forward_override() == nullptr) make_fused(*fusion.relu);
  }
}

}  // namespace

void fuse_modules(Module& model, const std::vector<Group>& groups) {
  NoGradGuard no_grad;
  const auto modules = model.named_modules({}, /*include_self=*/false);
  std::vector<Fusion> fusions;
  for (const Group& group : groups) fusions.push_back(resolve(modules, group));
  check_shared(modules, fusions);
  for (const Fusion& fusion : fusions) apply(fusion);
}

std::vector<Group> groups_of_sequentials(const Module& model) {
  std::vector<Group> groups;
  const auto add_groups_of = [&](const std::string& path, const Module& module) {
    if (module.as<SequentialImpl>() == nullptr) return;
    const auto children = module.named_children();
    for (std::size_t i = 0; i + 1 < children.size(); ++i) {
      const auto module_at = [&](std::size_t at) {
        return at < children.size() ? children[at].value().get() : nullptr;
      };
      if (!LayerView(*module_at(i))) continue;
      Group group{children[i].key()};
      std::size_t next = i + 1;
      if (module_at(next) && is_norm_of(*module_at(i), *module_at(next))) group.push_back(children[next++].key());
      if (module_at(next) && module_at(next)->as<ReLUImpl>() != nullptr) group.push_back(children[next].key());
      if (group.size() == 1) continue;
      if (!path.empty())
        for (std::string& name : group) name.insert(0, path + ".");
      groups.push_back(group);
    }
  };
  add_groups_of("", model);
  for (const auto& item : model.named_modules({}, /*include_self=*/false)) add_groups_of(item.key(), *item.value());
  return groups;
}

}  // namespace tenon::nn::quantization
