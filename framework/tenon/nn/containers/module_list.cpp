// Modules by position and by name: what changes them, copies and prints them.
#include <tenon/nn/containers/module_list.h>

#include <ostream>

namespace tenon::nn {

std::shared_ptr<Module> ModuleListImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleListImpl>();
  copy->train(is_training());
  for (const auto& module : modules_) copy->push_back(module->clone(device));
  return copy;
}

void ModuleListImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::ModuleList"; }

void ModuleListImpl::insert(std::size_t index, std::shared_ptr<Module> module) {
  if (index > size()) throw Error("Index out of range");
  register_module(std::to_string(size()), module);  // may refuse it: before anything has changed
  modules_.insert(modules_.begin() + static_cast<std::ptrdiff_t>(index), std::move(module));
  // Names are positions: those from here on move by one.
  for (std::size_t i = index; i < size(); ++i) children_[std::to_string(i)] = modules_[i];
}

std::shared_ptr<Module> ModuleListImpl::ptr(std::size_t index) const {
  if (index >= size()) throw Error("Index out of range");
  return modules_[index];
}

ModuleDictImpl::ModuleDictImpl(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
  update(modules);
}
ModuleDictImpl::ModuleDictImpl(const OrderedDict<std::string, std::shared_ptr<Module>>& modules) { update(modules); }

std::shared_ptr<Module> ModuleDictImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<ModuleDictImpl>();
  copy->train(is_training());
  for (const auto& item : children_) copy->insert(item.key(), item.value()->clone(device));
  return copy;
}

void ModuleDictImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::ModuleDict"; }

void ModuleDictImpl::clear() { children_.clear(); }
std::vector<std::string> ModuleDictImpl::keys() const { return children_.keys(); }
std::vector<std::shared_ptr<Module>> ModuleDictImpl::values() const { return children_.values(); }
OrderedDict<std::string, std::shared_ptr<Module>> ModuleDictImpl::items() const { return children_; }
std::shared_ptr<Module> ModuleDictImpl::operator[](const std::string& key) const { return children_[key]; }

std::shared_ptr<Module> ModuleDictImpl::insert(std::string key, std::shared_ptr<Module> module) {
  return register_module(std::move(key), std::move(module));
}

std::shared_ptr<Module> ModuleDictImpl::pop(const std::string& key) {
  std::shared_ptr<Module> module = children_[key];
  unregister_module(key);
  return module;
}

void ModuleDictImpl::update(const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules) {
  for (const auto& [key, module] : modules) put(key, module);
}

bool ModuleDictImpl::contains(const std::string& key) const noexcept { return children_.contains(key); }

void ModuleDictImpl::put(const std::string& key, std::shared_ptr<Module> module) {
  if (contains(key)) {
    replace_module(key, std::move(module));
  } else {
    insert(key, std::move(module));
  }
}

template class Cloneable<ModuleListImpl>;
template class Cloneable<ModuleDictImpl>;

}  // namespace tenon::nn
