// Modules that run one after the other: what adds, copies and prints them.
#include <tenon/nn/containers/sequential.h>

#include <ostream>

namespace tenon::nn {

SequentialImpl::SequentialImpl(OrderedDict<std::string, AnyModule>&& modules) {
  for (auto& item : modules) push_back(item.key(), std::move(item.value()));
}
SequentialImpl::SequentialImpl(std::initializer_list<NamedAnyModule> modules) {
  for (const auto& item : modules) push_back(item.name(), item.module());
}

std::shared_ptr<Module> SequentialImpl::clone(const std::optional<Device>& device) const {
  auto copy = std::make_shared<SequentialImpl>();
  copy->train(is_training());
  std::size_t i = 0;
  for (const auto& child : children_) copy->push_back(child.key(), modules_[i++].clone(device));
  return copy;
}

void SequentialImpl::pretty_print(std::ostream& stream) const { stream << "tenon::nn::Sequential"; }

void SequentialImpl::push_back(AnyModule module) { push_back(std::to_string(size()), std::move(module)); }
void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());  // refuses a name: before anything has changed
  modules_.push_back(std::move(module));
}
void SequentialImpl::push_back(const NamedAnyModule& named) { push_back(named.name(), named.module()); }

std::shared_ptr<Module> SequentialImpl::ptr(std::size_t index) const { return checked(index).ptr(); }

AnyModule& SequentialImpl::checked(std::size_t index) {
  if (index >= size()) throw Error("Index out of range");
  return modules_[index];
}

Sequential::Sequential(std::initializer_list<NamedAnyModule> modules)
    : ModuleHolder(std::make_shared<SequentialImpl>(modules)) {}

template class Cloneable<SequentialImpl>;

}  // namespace tenon::nn
