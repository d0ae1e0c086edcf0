// Module: registration, traversal and what is done to a whole tree.
// Long: libtorch's Module has as many functions, each of which walks the tree in its own way.
#include <tenon/nn/integer_layers.h>
#include <tenon/nn/module.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/demangled.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/create/factory.h>
#include <tenon/tensor/libtorch/warning.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>

namespace tenon::nn {

ForwardOverride::~ForwardOverride() = default;
std::shared_ptr<ForwardOverride> ForwardOverride::for_clone(const Module& self, Module&) const {
  throw Error(fmt::format("clone(): what computes in place of {}'s forward cannot be cloned", self.name()));
}

namespace {

std::string join_name(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void check_name(const std::string& what, const std::string& name) {
  if (name.empty()) throw Error(what + " name must not be empty");
  if (name.find('.') != std::string::npos) {
    throw Error(fmt::format("{} name must not contain a dot (got '{}')", what, name));
  }
}

void expect_equal(std::size_t copied, std::size_t original, const std::string& what, const std::string& how) {
  if (copied == original) return;
  throw Error("The cloned module does not have the same number of " + what + " as the original module after calling " +
              "reset(). Are you sure you called " + how + " inside reset() and not the constructor?");
}

void copy_tensors(const OrderedDict<std::string, Tensor>& from, OrderedDict<std::string, Tensor>& to,
                  const std::optional<Device>& device, const std::string& what, const std::string& how) {
  expect_equal(to.size(), from.size(), what, how);
  for (const auto& item : from) {
    const Tensor& tensor = item.value();
    if (!tensor.defined()) continue;
    const bool moves = device && tensor.device() != *device;
    if (!is_floating_point(tensor.scalar_type())) to[item.key()].set_requires_grad(false);
    to[item.key()].set_data(moves ? tensor.to(*device) : tensor.clone());
    if (is_floating_point(tensor.scalar_type())) to[item.key()].set_requires_grad(tensor.requires_grad());
  }
}

/// What is defined of the tensors that a module lists, and of its submodules where `recurse`, under their paths.
template <class Listed>
OrderedDict<std::string, Tensor> named_tensors(const Module& module, bool recurse, const Listed& listed) {
  OrderedDict<std::string, Tensor> result;
  const auto add = [&](const std::string& path, const Module& each) {
    for (const auto& tensor : listed(each)) {
      if (tensor->defined()) result.insert(join_name(path, tensor.key()), tensor.value());
    }
  };
  if (recurse) {
    module.apply(Module::ConstNamedModuleApplyFunction(add));
  } else {
    add({}, module);
  }
  return result;
}

}  // namespace

std::string demangle(const std::type_info& type) { return demangled(type.name()); }

Module::Module(std::string name) : Module() { name_ = std::move(name); }
Module::Module() : parameters_("Parameter"), buffers_("Buffer"), children_("Submodule") {}
Module::Module(const Module& other)
    : std::enable_shared_from_this<Module>(other),
      parameters_(other.parameters_),
      buffers_(other.buffers_),
      children_(other.children_),
      name_(other.name_),
      forward_override_(other.forward_override_),
      is_training_(other.is_training_) {
  link_children();
}
Module& Module::operator=(const Module& other) {
  parameters_ = other.parameters_;
  buffers_ = other.buffers_;
  children_ = other.children_;
  name_ = other.name_;
  forward_override_ = other.forward_override_;
  is_training_ = other.is_training_;
  link_children();
  return *this;
}
Module::Module(Module&& other) noexcept
    : parameters_(std::move(other.parameters_)),
      buffers_(std::move(other.buffers_)),
      children_(std::move(other.children_)),
      name_(std::move(other.name_)),
      forward_override_(std::move(other.forward_override_)),
      is_training_(other.is_training_) {
  link_children();
}
Module& Module::operator=(Module&& other) noexcept {
  parameters_ = std::move(other.parameters_);
  buffers_ = std::move(other.buffers_);
  children_ = std::move(other.children_);
  name_ = std::move(other.name_);
  forward_override_ = std::move(other.forward_override_);
  is_training_ = other.is_training_;
  link_children();
  return *this;
}
Module::~Module() = default;

const std::string& Module::name() const noexcept {
  if (!name_) name_ = demangle(typeid(*this));
  return *name_;
}

std::shared_ptr<Module> Module::clone(const std::optional<Device>&) const {
  throw Error(
      fmt::format("clone() has not been implemented for {0}. Subclass tenon::nn::Cloneable<{0}> instead of "
                  "tenon::nn::Module to inherit the ability to clone.",
                  name()));
}

void Module::clone_(Module&, const std::optional<Device>&) {}

void Module::forget_registered(Module& copy) {
  copy.parameters_.clear();
  copy.buffers_.clear();
  copy.children_.clear();
}

void Module::copy_registered(Module& copy, const std::optional<Device>& device) const {
  const PurposeGuard purpose(Purpose::kParameter);
  if (forward_override_) copy.forward_override_ = forward_override_->for_clone(*this, copy);
  copy_tensors(parameters_, copy.parameters_, device, "parameters", "register_parameter()");
  copy_tensors(buffers_, copy.buffers_, device, "buffers", "register_buffer()");
  expect_equal(copy.children_.size(), children_.size(), "child modules", "register_module()");
  for (const auto& child : children_) copy.children_[child.key()]->clone_(*child.value(), device);
}

void Module::throw_cloned_into_another_type() {
  throw Error(
      "Attempted to clone submodule, but it is of a different type than the submodule it was to be cloned into");
}

void Module::apply(const ModuleApplyFunction& function) {
  function(*this);
  apply_below([&](const std::string&, const std::shared_ptr<Module>& module) { function(*module); }, {});
}
void Module::apply(const ConstModuleApplyFunction& function) const {
  function(*this);
  apply_below([&](const std::string&, const std::shared_ptr<Module>& module) { function(*module); }, {});
}
void Module::apply(const NamedModuleApplyFunction& function, const std::string& name_prefix) {
  function(name_prefix, *this);
  apply_below([&](const std::string& name, const std::shared_ptr<Module>& module) { function(name, *module); },
              name_prefix);
}
void Module::apply(const ConstNamedModuleApplyFunction& function, const std::string& name_prefix) const {
  function(name_prefix, *this);
  apply_below([&](const std::string& name, const std::shared_ptr<Module>& module) { function(name, *module); },
              name_prefix);
}
void Module::apply(const ModulePointerApplyFunction& function) const {
  function(shared_from_this_checked());
  apply_below([&](const std::string&, const std::shared_ptr<Module>& module) { function(module); }, {});
}
void Module::apply(const NamedModulePointerApplyFunction& function, const std::string& name_prefix) const {
  function(name_prefix, shared_from_this_checked());
  apply_below(function, name_prefix);
}

std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }

OrderedDict<std::string, Tensor> Module::named_parameters(bool recurse) const {
  return named_tensors(
      *this, recurse, [](const Module& module) -> auto& { return module.parameters_; });
}

std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

OrderedDict<std::string, Tensor> Module::named_buffers(bool recurse) const {
  return named_tensors(
      *this, recurse, [](const Module& module) -> auto& { return module.buffers_; });
}

std::vector<std::shared_ptr<Module>> Module::modules(bool include_self) const {
  return named_modules({}, include_self).values();
}

OrderedDict<std::string, std::shared_ptr<Module>> Module::named_modules(const std::string& name_prefix,
                                                                        bool include_self) const {
  OrderedDict<std::string, std::shared_ptr<Module>> result;
  const auto add = [&](const std::string& path, const std::shared_ptr<Module>& module) { result.insert(path, module); };
  if (include_self) add(name_prefix, shared_from_this_checked());
  apply_below(add, name_prefix);
  return result;
}

std::vector<std::shared_ptr<Module>> Module::children() const { return children_.values(); }
OrderedDict<std::string, std::shared_ptr<Module>> Module::named_children() const { return children_; }

void Module::train(bool on) {
  for (auto& child : children_) child.value()->train(on);
  is_training_ = on;
}
void Module::eval() { train(false); }
bool Module::is_training() const noexcept { return is_training_; }

void Module::convert(const std::function<Tensor(const Tensor&)>& conversion) {
  NoGradGuard no_grad;
  const PurposeGuard purpose(Purpose::kParameter);
  for (auto& child : children_) child.value()->convert(conversion);
  for (auto* tensors : {&parameters_, &buffers_}) {
    for (auto& tensor : *tensors) {
      if (!tensor->defined()) continue;
      tensor->set_data(conversion(*tensor));
      if (!tensor->grad().defined()) continue;
      const PurposeGuard of_gradient(Purpose::kGradient);
      tensor->mutable_grad() = conversion(tensor->grad());
    }
  }
}

namespace {
/// Floating dtypes are for floating tensors, so that counters and indices stay whole; integer ones are for all.
Dtype dtype_after(const Tensor& tensor, Dtype wanted) {
  return tensor.is_floating_point() || !is_floating_point(wanted) ? wanted : tensor.scalar_type();
}
}  // namespace

void Module::to(Device device, Dtype dtype, bool non_blocking) {
  check_conversion(*this, dtype);
  convert([&](const Tensor& t) { return t.to(device, dtype_after(t, dtype), non_blocking); });
}
void Module::to(Dtype dtype, bool non_blocking) {
  check_conversion(*this, dtype);
  convert([&](const Tensor& t) { return t.to(dtype_after(t, dtype), non_blocking); });
}
void Module::to(Device device, bool non_blocking) {
  convert([&](const Tensor& t) { return t.to(device, t.scalar_type(), non_blocking); });
}
void Module::to_empty(Device device) {
  convert([&](const Tensor& t) { return tenon::empty_like(t, TensorOptions(device)); });
}

void Module::zero_grad(bool set_to_none) {
  for (auto& child : children_) child.value()->zero_grad(set_to_none);
  for (auto& parameter : parameters_) {
    if (!parameter->defined() || !parameter->grad().defined()) continue;
    if (set_to_none) {
      parameter->mutable_grad() = Tensor();
    } else {
      parameter->mutable_grad() = parameter->grad().detach();
      parameter->mutable_grad().zero_();
    }
  }
}

void Module::save(OutputArchive& archive) const {
  for (const auto& parameter : parameters_) archive.write(parameter.key(), parameter.value());
  for (const auto& buffer : buffers_) archive.write(buffer.key(), buffer.value(), /*is_buffer=*/true);
  for (const auto& child : children_) {
    if (!child.value()->is_serializable()) continue;
    OutputArchive nested;
    child.value()->save(nested);
    archive.write(child.key(), nested);
  }
}

void Module::load(InputArchive& archive) {
  check_archive(*this, archive);  // of all below, before anything changes
  for (auto& parameter : parameters_) archive.read(parameter.key(), parameter.value());
  for (auto& buffer : buffers_) archive.read(buffer.key(), buffer.value(), /*is_buffer=*/true);
  for (const auto& child : children_) {
    if (!child.value()->is_serializable()) continue;
    InputArchive nested;
    archive.read(child.key(), nested);
    child.value()->load(nested);
  }
}

bool Module::is_serializable() const { return true; }

void Module::pretty_print(std::ostream& stream) const { stream << name(); }

void Module::pretty_print_recursive(std::ostream& stream, const std::string& indentation) const {
  pretty_print(stream);
  if (children_.is_empty()) return;
  stream << "(\n";
  const std::string inner = indentation + "  ";
  for (const auto& child : children_) {
    stream << inner << "(" << child.key() << "): ";
    child.value()->pretty_print_recursive(stream, inner);
    stream << '\n';
  }
  stream << indentation << ")";
}

std::ostream& operator<<(std::ostream& stream, const Module& module) {
  module.pretty_print_recursive(stream, "");
  return stream;
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("Parameter", name);
  if (!tensor.defined()) {
    if (requires_grad) {
      TENON_WARN("An undefined tensor cannot require grad. Ignoring the `requires_grad=true` function parameter of '",
                 name, "'.");
    }
  } else {
    tensor.set_requires_grad(requires_grad);
  }
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor) {
  check_name("Buffer", name);
  return buffers_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::replace_parameter(const std::string& name, Tensor tensor) {
  if (!parameters_.contains(name)) throw Error(fmt::format("No parameter with name `{}` is registered", name));
  return parameters_[name] = std::move(tensor);
}

Tensor& Module::replace_buffer(const std::string& name, Tensor tensor) {
  if (!buffers_.contains(name)) throw Error(fmt::format("No buffer with name `{}` is registered", name));
  return buffers_[name] = std::move(tensor);
}

void Module::add_child(std::string name, std::shared_ptr<Module> module) {
  check_name("Submodule", name);
  const auto& added = children_.insert(std::move(name), std::move(module));
  if (added) link_child(*added);
}

void Module::unregister_module(const std::string& name) {
  if (!children_.contains(name)) throw Error(fmt::format("No Module with name `{}` is registered", name));
  children_.erase(name);
}

void Module::apply_below(const NamedModulePointerApplyFunction& function, const std::string& prefix) const {
  for (const auto& child : children_) {
    const std::string path = join_name(prefix, child.key());
    function(path, child.value());
    child.value()->apply_below(function, path);
  }
}

std::shared_ptr<Module> Module::shared_from_this_checked() const {
  if (auto self = weak_from_this().lock()) return std::const_pointer_cast<Module>(self);
  throw Error(
      "It looks like you attempted to retrieve your top-level module as a shared_ptr, but it is not stored in a "
      "shared_ptr. "
      "Make it with std::make_shared, or leave it out by passing include_self = false to modules() or named_modules()");
}

bool Module::_forward_has_default_args() { return false; }
unsigned int Module::_forward_num_required_args() {
  TENON_ASSERT(false, "only a module with FORWARD_HAS_DEFAULT_ARGS is asked for its required arguments");
}
std::vector<AnyValue> Module::_forward_populate_default_args(std::vector<AnyValue>&& arguments) {
  return std::move(arguments);
}

unsigned int detail::first_default(DefaultArguments defaults) { return defaults.begin()->first; }

std::vector<AnyValue> detail::with_defaults(std::vector<AnyValue> arguments, DefaultArguments defaults) {
  for (const auto& [position, value] : defaults) {
    if (position >= arguments.size()) arguments.push_back(value);
  }
  return arguments;
}

}  // namespace tenon::nn
