// Module: the base of everything that holds parameters. Parameters, buffers and submodules are registered by name; what
// is done to a module (train, to, zero_grad, save) is done to the whole tree below it. Names and semantics are
// libtorch's.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/core/owned.h>
#include <tenon/nn/containers/any_value.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/containers/ordered_dict.h>
#include <tenon/nn/forward_override.h>
#include <tenon/nn/module_scope.h>
#include <tenon/tensor/tensor.h>

#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {
class InputArchive;
class OutputArchive;
}  // namespace tenon

namespace tenon::nn {

template <class ModuleType, class... Arguments>
struct AnyModuleContent;

class TENON_EXPORT Module : public std::enable_shared_from_this<Module> {
 public:
  using ModuleApplyFunction = std::function<void(Module&)>;
  using ConstModuleApplyFunction = std::function<void(const Module&)>;
  using NamedModuleApplyFunction = std::function<void(const std::string&, Module&)>;
  using ConstNamedModuleApplyFunction = std::function<void(const std::string&, const Module&)>;
  using ModulePointerApplyFunction = std::function<void(const std::shared_ptr<Module>&)>;
  using NamedModulePointerApplyFunction = std::function<void(const std::string&, const std::shared_ptr<Module>&)>;

  TENON_API explicit Module(std::string name);
  /// The name is then the type's, as seen on the first call of name().
  TENON_API Module();
  TENON_API Module(const Module&);
  TENON_API Module& operator=(const Module&);
  TENON_API Module(Module&&) noexcept;
  TENON_API Module& operator=(Module&&) noexcept;
  TENON_API virtual ~Module();

  /// The name given at construction, else the type's.
  TENON_API const std::string& name() const noexcept;

  /// Where it stands in the tree that it is registered in, by the names of registration: "encoder.layer.3.mlp"; empty
  /// for a root. Of several places it is the first that is still there.
  TENON_API std::string path() const;
  /// The head of that tree; itself where it is registered nowhere.
  TENON_API const Module& root() const;

  /// A deep copy, on another device if one is given. Throws Error unless the type derives from Cloneable.
  TENON_API virtual std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const;

  /// Calls the function on this module, then on every one below it, parents first.
  TENON_API void apply(const ModuleApplyFunction& function);
  TENON_API void apply(const ConstModuleApplyFunction& function) const;
  TENON_API void apply(const NamedModuleApplyFunction& function, const std::string& name_prefix = {});
  TENON_API void apply(const ConstNamedModuleApplyFunction& function, const std::string& name_prefix = {}) const;
  TENON_API void apply(const ModulePointerApplyFunction& function) const;
  TENON_API void apply(const NamedModulePointerApplyFunction& function, const std::string& name_prefix = {}) const;

  /// Defined parameters and buffers; names are paths joined by dots.
  TENON_API std::vector<Tensor> parameters(bool recurse = true) const;
  /// As parameters(), each with its path.
  TENON_API OrderedDict<std::string, Tensor> named_parameters(bool recurse = true) const;
  /// Defined buffers of this module, and of those below it if `recurse`.
  TENON_API std::vector<Tensor> buffers(bool recurse = true) const;
  /// As buffers(), each with its path.
  TENON_API OrderedDict<std::string, Tensor> named_buffers(bool recurse = true) const;
  /// This module, unless `include_self` is off, and every one below it, parents first. Throws Error with `include_self`
  /// where no shared_ptr owns this one.
  TENON_API std::vector<std::shared_ptr<Module>> modules(bool include_self = true) const;
  /// As modules(), each with its path behind `name_prefix`, which alone is the name of this one.
  TENON_API OrderedDict<std::string, std::shared_ptr<Module>> named_modules(const std::string& name_prefix = {},
                                                                            bool include_self = true) const;
  /// The modules right below this one, in the order of registration.
  TENON_API std::vector<std::shared_ptr<Module>> children() const;
  /// As children(), each with its name.
  TENON_API OrderedDict<std::string, std::shared_ptr<Module>> named_children() const;

  /// Training mode on or off, here and in every module below: what dropout and batch norm go by.
  TENON_API virtual void train(bool on = true);
  /// train(false).
  TENON_API void eval();
  /// Whether this module is in training mode.
  TENON_API virtual bool is_training() const noexcept;

  /// Converts in place. A floating dtype is for floating tensors only, an integer one for all. Throws Error for a model
  /// with layers on integers of 8 or 4 bits and a dtype other than float32.
  TENON_API virtual void to(Device device, Dtype dtype, bool non_blocking = false);
  TENON_API virtual void to(Dtype dtype, bool non_blocking = false);
  TENON_API virtual void to(Device device, bool non_blocking = false);
  /// Gives every parameter and buffer uninitialised memory on that device, in the order and the layout of to(), and
  /// copies nothing.
  TENON_API void to_empty(Device device);
  /// Converts every floating parameter and buffer to float16.
  TENON_API void half() { to(Dtype::kFloat16); }
  /// So to bfloat16.
  TENON_API void bfloat16() { to(Dtype::kBFloat16); }

  /// Gives the memory of the gradients back, or zeroes them. PyTorch's default, from 2.0 on.
  TENON_API virtual void zero_grad(bool set_to_none = true);

  /// Writes defined parameters and buffers, and children unless they are not serializable, under their names.
  TENON_API virtual void save(OutputArchive& archive) const;
  /// Reads what save() wrote. Each tensor stays the object that it is, and on its device, where libtorch takes the
  /// archive's; sizes and dtype become the archive's, unchecked. Throws Error where the archive lacks a defined tensor
  /// or a child.
  TENON_API virtual void load(InputArchive& archive);
  /// False for modules that wrap something which cannot be written to a file; they are then left out.
  TENON_API virtual bool is_serializable() const;

  /// What `stream << module` shows of this module alone: here its name, in the library's modules the options too.
  TENON_API virtual void pretty_print(std::ostream& stream) const;

  /// Null where this module is no such type.
  template <class T>
  typename detail::ContainedType<T>::type* as() noexcept {
    return dynamic_cast<typename detail::ContainedType<T>::type*>(this);
  }
  template <class T>
  const typename detail::ContainedType<T>::type* as() const noexcept {
    return dynamic_cast<const typename detail::ContainedType<T>::type*>(this);
  }

  /// The returned reference stays valid until the next registration. Throws Error for an empty or dotted name, one that
  /// another parameter has, or a gradient of a dtype that is not floating.
  TENON_API Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  /// As register_parameter(), among the buffers, for what is saved and moved with the module but not trained. Whether
  /// it requires a gradient stays as it is. Throws Error as register_parameter().
  TENON_API Tensor& register_buffer(std::string name, Tensor tensor);
  /// Makes a module a child under that name and returns it. Throws Error for an empty or dotted name, or one that
  /// another child has.
  template <class M>
  std::shared_ptr<M> register_module(std::string name, std::shared_ptr<M> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> register_module(std::string name, ModuleHolder<M> holder) {
    return register_module(std::move(name), holder.ptr());
  }
  /// Puts another module in the place of a child and returns it. Throws Error where there is no such child.
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, std::shared_ptr<M> module) {
    children_[name] = module;
    link_child(*module);
    return module;
  }
  template <class M>
  std::shared_ptr<M> replace_module(const std::string& name, ModuleHolder<M> holder) {
    return replace_module(name, holder.ptr());
  }
  /// Puts another tensor, or none, in the place of a parameter and returns it, as it is. Throws Error where there is no
  /// parameter of that name, not even an undefined one.
  TENON_API Tensor& replace_parameter(const std::string& name, Tensor tensor);
  /// As replace_parameter(), among the buffers. Throws Error where there is no buffer of that name.
  TENON_API Tensor& replace_buffer(const std::string& name, Tensor tensor);
  /// Lets another forward stand for this module's own; null: its own again. Only the kinds of modules that
  /// forward_override.h names ask for it.
  void set_forward_override(std::shared_ptr<ForwardOverride> other) { forward_override_ = std::move(other); }
  /// What stands for this module's forward; null: its own.
  ForwardOverride* forward_override() const noexcept { return forward_override_.get(); }
  /// The same, to be kept.
  const std::shared_ptr<ForwardOverride>& shared_forward_override() const noexcept { return forward_override_; }
  /// Takes a child out. Throws Error where there is none of that name.
  TENON_API void unregister_module(const std::string& name);

 protected:
  // What FORWARD_HAS_DEFAULT_ARGS overrides.
  TENON_API virtual bool _forward_has_default_args();
  TENON_API virtual unsigned int _forward_num_required_args();
  TENON_API virtual std::vector<AnyValue> _forward_populate_default_args(std::vector<AnyValue>&& arguments);

  OrderedDict<std::string, Tensor> parameters_;
  OrderedDict<std::string, Tensor> buffers_;
  OrderedDict<std::string, std::shared_ptr<Module>> children_;

 private:
  template <class Derived>
  friend class Cloneable;
  template <class ModuleType, class... Arguments>
  friend struct AnyModuleContent;
  friend TENON_API std::ostream& operator<<(std::ostream& stream, const Module& module);

  TENON_API void add_child(std::string name, std::shared_ptr<Module> module);
  TENON_API void link_child(Module& child);
  void link_children();
  virtual void clone_(Module& other, const std::optional<Device>& device);
  // The parts of Cloneable::clone(): `copy` is a fresh copy of *this.
  TENON_API static void forget_registered(Module& copy);
  TENON_API void copy_registered(Module& copy, const std::optional<Device>& device) const;
  [[noreturn]] TENON_API static void throw_cloned_into_another_type();
  void convert(const std::function<Tensor(const Tensor&)>& conversion);
  void pretty_print_recursive(std::ostream& stream, const std::string& indentation) const;
  void apply_below(const NamedModulePointerApplyFunction& function, const std::string& prefix) const;
  std::shared_ptr<Module> shared_from_this_checked() const;
  std::pair<std::string, const Module*> path_and_root() const;
  friend class ModuleScope;

  /// Note [Where a module stands] in module_scope.cpp. A copy stands nowhere yet.
  struct Place {
    struct Links;
    Owned<Links> links;  ///< null where there is none yet
    Links& known();
    Place();
    Place(const Place&);
    Place& operator=(const Place&);
    ~Place();
  };

  mutable std::optional<std::string> name_;
  Place place_;
  std::shared_ptr<ForwardOverride> forward_override_;
  bool is_training_ = true;
};

TENON_API std::ostream& operator<<(std::ostream& stream, const Module& module);

namespace detail {
/// What FORWARD_HAS_DEFAULT_ARGS is given: by rising position.
using DefaultArguments = std::initializer_list<std::pair<unsigned int, AnyValue>>;
TENON_API unsigned int first_default(DefaultArguments defaults);
/// The arguments, then the defaults of those that are missing.
TENON_API std::vector<AnyValue> with_defaults(std::vector<AnyValue> arguments, DefaultArguments defaults);
}  // namespace detail

/// The arguments of forward() that have defaults, as {position, AnyValue(default)}: so that Sequential and AnyModule,
/// which see forward() without its defaults, can leave them out.
#define FORWARD_HAS_DEFAULT_ARGS(...)                                                                               \
  template <class ModuleType, class... Arguments>                                                                   \
  friend struct ::tenon::nn::AnyModuleContent;                                                                      \
  bool _forward_has_default_args() override { return true; }                                                        \
  unsigned int _forward_num_required_args() override { return ::tenon::nn::detail::first_default({__VA_ARGS__}); }  \
  std::vector<::tenon::nn::AnyValue> _forward_populate_default_args(std::vector<::tenon::nn::AnyValue>&& arguments) \
      override {                                                                                                    \
    return ::tenon::nn::detail::with_defaults(std::move(arguments), {__VA_ARGS__});                                 \
  }

/// The same for modules of this library, in two halves: their headers declare, and their sources say which, as
/// TENON_DEFAULT_ARGS_OF(LSTMImpl, {1, AnyValue(…)}). What is made of the defaults is then compiled once.
#define TENON_DECLARE_DEFAULT_ARGS()                            \
  template <class ModuleType, class... Arguments>               \
  friend struct ::tenon::nn::AnyModuleContent;                  \
  bool _forward_has_default_args() override { return true; }    \
  TENON_API unsigned int _forward_num_required_args() override; \
  TENON_API std::vector<AnyValue> _forward_populate_default_args(std::vector<AnyValue>&& arguments) override;
#define TENON_DEFAULT_ARGS_OF(Class, ...)                                                           \
  unsigned int Class::_forward_num_required_args() { return detail::first_default({__VA_ARGS__}); } \
  std::vector<AnyValue> Class::_forward_populate_default_args(std::vector<AnyValue>&& arguments) {  \
    return detail::with_defaults(std::move(arguments), {__VA_ARGS__});                              \
  }

}  // namespace tenon::nn
