// Where a module stands in its tree, and the scope that carries that name.
#include <tenon/nn/module.h>
#include <tenon/nn/module_scope.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace tenon::nn {
namespace {

/// The innermost module of this thread that has entered its scope.
constinit thread_local const Module* innermost = nullptr;

}  // namespace

std::string type_name_of(const Module& module) {
  constexpr std::string_view kImpl = "Impl";  // of the class behind a holder, which a program names without it
  std::string type = module.name();
  type.erase(0, type.rfind(':', type.find('<')) + 1);  // npos + 1 is 0
  const std::size_t end = std::min(type.find('<'), type.size());
  if (end > kImpl.size() && type.compare(end - kImpl.size(), kImpl.size(), kImpl) == 0)
    type.erase(end - kImpl.size(), kImpl.size());
  return type;
}

// Note [Where a module stands]: a child knows those that it was registered in by links that end with them, and its name
// by looking itself up there. What is renamed, replaced, moved or taken out needs no bookkeeping then.

struct Module::Place::Links {
  std::shared_ptr<Module*> self;
  std::vector<std::weak_ptr<Module*>> parents;
};

Module::Place::Links& Module::Place::known() {
  if (!links) links = std::make_unique<Links>();
  return *links;
}
Module::Place::Place() = default;
Module::Place::Place(const Place&) {}
Module::Place::~Place() = default;
Module::Place& Module::Place::operator=(const Place&) { return *this; }

void Module::link_child(Module& child) {
  std::shared_ptr<Module*>& self = place_.known().self;
  if (!self) self = std::make_shared<Module*>(this);
  auto& parents = child.place_.known().parents;
  std::erase_if(parents, [](const std::weak_ptr<Module*>& parent) { return parent.expired(); });
  if (std::ranges::none_of(parents, [&](const auto& parent) { return parent.lock() == self; })) parents.push_back(self);
}

void Module::link_children() {
  for (const auto& child : children_)
    if (child.value()) link_child(*child.value());
}

std::string Module::path() const { return path_and_root().first; }
const Module& Module::root() const { return *path_and_root().second; }

std::pair<std::string, const Module*> Module::path_and_root() const {
  std::string path;
  const Module* module = this;
  for (int depth = 0; depth < 256; ++depth) {  // a module may have been registered in itself
    const Module* parent = nullptr;
    if (!module->place_.links) break;
    for (const auto& link : module->place_.links->parents) {
      const std::shared_ptr<Module*> held = link.lock();
      if (!held) continue;
      for (const auto& child : (*held)->children_) {
        if (child.value().get() != module) continue;
        path.insert(0, path.empty() ? child.key() : child.key() + ".");
        parent = *held;
        break;
      }
      if (parent != nullptr) break;
    }
    if (parent == nullptr) break;
    module = parent;
  }
  return {std::move(path), module};
}

[[gnu::cold]] void ModuleScope::enter(const Module& module) noexcept {
  if (innermost == &module) return;
  try {
    const auto [path, root] = module.path_and_root();
    scope_.enter({.kind = scopes::Kind::kModule, .name = path.c_str()}, type_name_of(module).c_str(),
                 type_name_of(*root).c_str());
  } catch (...) {
    return;  // no memory for a name: the scope is not entered
  }
  outer_ = std::exchange(innermost, &module);
  is_entered_ = true;
}

[[gnu::cold]] void ModuleScope::leave() noexcept { innermost = outer_; }

}  // namespace tenon::nn
