// Custom functions: what happens to their outputs.
#include <tenon/autograd/function.h>
#include <tenon/core/demangled.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/live_tensors.h>

#include <algorithm>

namespace tenon::autograd {

static bool is_among(const std::vector<TensorImpl*>& tensors, const TensorImpl* tensor) {
  return std::find(tensors.begin(), tensors.end(), tensor) != tensors.end();
}

std::string readable_type_name(const std::type_info& type) {
  return "torch::autograd::CppNode<" + demangled(type.name()) + ">";
}

namespace detail {

variable_list to_list(const Tensor& tensor) { return {tensor}; }
variable_list to_list(const variable_list& list) { return list; }

void collect(variable_list& tensors, std::vector<char>& flags, const Tensor& tensor) {
  tensors.push_back(tensor);
  flags.push_back(1);
}
void collect(variable_list& tensors, std::vector<char>& flags, const std::optional<Tensor>& tensor) {
  const bool is_there = tensor && tensor->defined();
  if (is_there) tensors.push_back(*tensor);
  flags.push_back(is_there ? 1 : 0);
}
void collect(variable_list& tensors, std::vector<char>& flags, const variable_list& list) {
  for (const Tensor& tensor : list) collect(tensors, flags, tensor);
}
void collect(variable_list& tensors, std::vector<char>& flags, TensorList list) {
  for (const Tensor& tensor : list) collect(tensors, flags, tensor);
}

GradList gradients_of_variables(variable_list outputs, const std::vector<char>& is_variable, const std::string& name) {
  const std::size_t forwards = is_variable.size();
  if (outputs.size() > forwards) {
    // More is fine as long as the extra ones are undefined.
    const auto extra = outputs.begin() + static_cast<std::ptrdiff_t>(forwards);
    if (std::none_of(extra, outputs.end(), [](const Tensor& output) { return output.defined(); })) {
      outputs.resize(forwards);
    }
  }
  if (outputs.size() != forwards) {
    throw Error("function " + name + " returned an incorrect number of gradients (expected " +
                std::to_string(forwards) + ", got " + std::to_string(outputs.size()) + ")");
  }
  GradList results;
  for (std::size_t i = 0; i < forwards; ++i) {
    if (is_variable[i] == 0) {
      if (outputs[i].defined()) {
        throw Error("function " + name + " returned a gradient different that is defined at position " +
                    std::to_string(i + 1) + ", but the corresponding forward input was not a Variable");
      }
      continue;
    }
    results.push_back(std::move(outputs[i]));
  }
  return results;
}

}  // namespace detail

Tensor zeros_of(const InputMetadata& metadata) {
  Tensor zeros = allocate_tensor(*metadata.state, metadata.sizes, metadata.dtype);
  zeros.zero_();
  return zeros;
}

AutogradContext::AutogradContext() = default;
AutogradContext::~AutogradContext() = default;

void AutogradContext::each_saved(const std::function<void(const SavedTensor&)>& show) const {
  for (const auto& slot : saved_)
    if (slot->holds()) show(*slot);
}

void AutogradContext::release() {
  has_freed_buffers_ = true;
  std::vector<Owned<SavedTensor>> former;
  const ListedChange change;
  former.swap(saved_);
}

void AutogradContext::save_for_backward(variable_list to_save) { to_save_ = std::move(to_save); }

variable_list AutogradContext::get_saved_variables() const {
  if (has_freed_buffers_) throw_backward_twice();
  variable_list result;
  result.reserve(saved_.size());
  for (const auto& slot : saved_) result.push_back(slot->unpack(*node_));
  return result;
}

void AutogradContext::save_variables() {
  std::vector<Owned<SavedTensor>> slots;
  for (const Tensor& tensor : to_save_) {
    auto slot = std::make_unique<SavedTensor>();
    if (tensor.defined()) slot->save(tensor, tensor.grad_fn().get() == node_);
    slots.push_back(std::move(slot));
  }
  to_save_.clear();
  const ListedChange change;
  saved_ = std::move(slots);
}

void AutogradContext::mark_dirty(const variable_list& inputs) {
  dirty_.clear();
  for (const Tensor& input : inputs) dirty_.push_back(input.unsafeGetTensorImpl());
}

void AutogradContext::mark_non_differentiable(const variable_list& outputs) {
  non_differentiable_.clear();
  for (const Tensor& output : outputs) non_differentiable_.push_back(output.unsafeGetTensorImpl());
}

bool AutogradContext::needs_input_grad(std::size_t edge) const { return node_->task_should_compute_output(edge); }

bool AutogradContext::needs_input_grad(std::initializer_list<IndexRange> ranges) const {
  for (const IndexRange& range : ranges) {
    for (std::size_t i = range.first; i < range.second; ++i) {
      if (node_->task_should_compute_output(i)) return true;
    }
  }
  return false;
}

variable_list wrap_outputs(const variable_list& inputs, const variable_list& outputs, AutogradContext& context,
                           const IntrusivePtr<Node>& node) {
  // Where a dirty input does not come back, what was rewritten would have no history.
  for (TensorImpl* const dirty : context.dirty_) {
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const Tensor& output) { return output.defined() && output.unsafeGetTensorImpl() == dirty; })) {
      throw Error(
          "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
          "modified inplace must all be outputs of the Function.");
    }
  }
  std::vector<TensorImpl*> given;
  for (const Tensor& input : inputs) given.push_back(input.unsafeGetTensorImpl());
  variable_list result;
  result.reserve(outputs.size());
  for (const Tensor& output : outputs) {
    if (!output.defined()) {
      if (node) node->add_undefined_input();
      result.emplace_back();
      continue;
    }
    TensorImpl* const impl = output.unsafeGetTensorImpl();
    const bool is_input = is_among(given, impl);
    const bool is_modified = is_input && is_among(context.dirty_, impl);
    const bool is_differentiable =
        node && !is_among(context.non_differentiable_, impl) && is_floating_point(output.scalar_type());
    Tensor wrapped = output;
    if (is_modified) impl_bump_version(wrapped);
    if (!is_differentiable) {
      // As in PyTorch: detached, or an alias where the input itself came back.
      if (is_input && !is_modified) {
        wrapped = alias_of(output);
        if (!output.requires_grad()) make_view(output, wrapped, CreationMeta::IN_CUSTOM_FUNCTION);
      } else if (wrapped.requires_grad() && !wrapped.is_leaf()) {
        wrapped.detach_();
      }
      if (node) node->add_input_metadata(wrapped);  // backward still gets a zero gradient for it
      result.push_back(std::move(wrapped));
      continue;
    }
    if (is_input && is_modified) {
      const bool was_leaf_wanting_grad = wrapped.is_leaf() && wrapped.requires_grad();
      if (was_leaf_wanting_grad)
        throw Error("a leaf Variable that requires grad is being used in an in-place operation.");
      if (!wrapped.is_view()) {
        set_gradient_edge(wrapped, {node, node->add_input_metadata(wrapped)});
      } else if (outputs.size() == 1) {
        rebase_history(wrapped, node);
      } else {
        throw Error(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
            "the input is not a view (using .clone() for example) or make your Function only return one Tensor "
            "(potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a "
            "second one that does the other operations).");
      }
    } else if (is_input) {
      // Returned as it came: a view of it, whose history is this function.
      wrapped = alias_of(output);
      make_view(output, wrapped, CreationMeta::IN_CUSTOM_FUNCTION);
      set_gradient_edge(wrapped, {node, node->add_input_metadata(wrapped)});
    } else {
      if (wrapped.is_view()) meta_of(wrapped)->view->creation = CreationMeta::IN_CUSTOM_FUNCTION;
      set_gradient_edge(wrapped, {node, node->add_input_metadata(wrapped)});
    }
    result.push_back(std::move(wrapped));
  }
  return result;
}

}  // namespace tenon::autograd
