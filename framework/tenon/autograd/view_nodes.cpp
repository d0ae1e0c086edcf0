// Nodes of views that were written to.
#include <tenon/autograd/saved_tensor.h>
#include <tenon/autograd/view_nodes.h>
#include <tenon/tensor/live_tensors.h>

#include <utility>

namespace tenon::autograd {
namespace {

/// Gradient of an in-place write through a view, seen from the base: the part under the view goes through the view's
/// function, the rest passes by.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> function)
      : view_sizes_(view.impl().sizes()),
        view_strides_(view.impl().strides()),
        view_offset_(view.storage_offset() - base.storage_offset()),
        base_sizes_(base.impl().sizes()),
        base_strides_(base.impl().strides()),
        function_(std::move(function)) {
    add_input_metadata(base);
    add_next_edge(gradient_edge(base));
    for (std::size_t i = 1; i < function_->num_outputs(); ++i) add_next_edge(function_->next_edge(i));
    // Whether the function computes its first gradient is decided by who wants the base's, not the view's former
    // history.
    function_->edges()[0] = next_edge(0);
  }
  std::string name() const override { return "torch::autograd::CopySlices"; }
  void release_variables() override {
    released_ = true;
    IntrusivePtr<Node> former;
    const ListedChange change;
    former.swap(function_);
  }
  void each_saved(const std::function<void(const SavedTensor&)>& show) const override {
    if (function_) function_->each_saved(show);
  }
  GradList apply(GradList&& gradients) override;

 private:
  Dims view_sizes_, view_strides_;
  std::int64_t view_offset_;
  Dims base_sizes_, base_strides_;
  IntrusivePtr<Node> function_;
  bool released_ = false;
};

/// Adds a gradient to a view, also to one whose elements share memory: slice by slice along its shortest dimension.
void add_to_view(const Tensor& view, const Tensor& gradient) {
  if (!view.impl().may_overlap_itself()) {
    view.add_(gradient);
    return;
  }
  std::int64_t shortest = -1;
  for (std::int64_t d = 0; d < view.dim(); ++d) {
    if (view.size(d) > 1 && (shortest < 0 || view.size(d) < view.size(shortest))) shortest = d;
  }
  for (std::int64_t i = 0; i < view.size(shortest); ++i) {
    add_to_view(view.select(shortest, i), gradient.select(shortest, i));
  }
}

/// History of a view whose base was modified in place: regenerated from the base.
class ViewOfBase final : public Node {
 public:
  ViewOfBase(Edge of_base, const TensorImpl& base, const Tensor& view, std::int64_t offset)
      : sizes_(view.impl().sizes()),
        strides_(view.impl().strides()),
        offset_(offset),
        base_sizes_(base.sizes()),
        base_strides_(base.strides()) {
    add_next_edge(std::move(of_base));
    add_input_metadata(view);
  }
  std::string name() const override { return "AsStridedBackward0"; }
  GradList apply(GradList&& gradients) override {
    GradList results;
    results.resize(1);
    if (!gradients[0].defined()) return results;
    // The view of a fresh, dense tensor of the base's layout: what it covers gets the gradient, the rest zero.
    Tensor whole = gradients[0].new_empty_strided(base_sizes_, base_strides_);
    whole.zero_();
    add_to_view(whole.as_strided(sizes_, strides_, offset_), gradients[0]);
    results[0] = std::move(whole);
    return results;
  }

 private:
  Dims sizes_, strides_;
  std::int64_t offset_;
  Dims base_sizes_, base_strides_;
};

/// The function that a CopySlices runs on this thread, and what its result is in the graph: a view of what the
/// CopySlices made of the base.
struct WrittenView {
  const Node* function;
  Edge result;
};
constinit thread_local const WrittenView* written_view = nullptr;

class WrittenViewGuard {
 public:
  explicit WrittenViewGuard(const WrittenView& view) : previous_(std::exchange(written_view, &view)) {}
  ~WrittenViewGuard() { written_view = previous_; }
  WrittenViewGuard(const WrittenViewGuard&) = delete;
  WrittenViewGuard& operator=(const WrittenViewGuard&) = delete;

 private:
  const WrittenView* previous_;
};

GradList CopySlices::apply(GradList&& gradients) {
  GradList results;
  results.resize(num_outputs());
  const Tensor& gradient = gradients[0];
  if (!gradient.defined()) return results;
  if (released_) {
    throw Error(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Specify retain_graph=True if you need to backward through the graph a second time.");
  }
  Tensor whole = gradient.new_empty_strided(base_sizes_, base_strides_);
  whole.copy_(gradient);
  const Tensor slice = whole.as_strided(view_sizes_, view_strides_, view_offset_);
  GradList argument;
  argument.push_back(slice.clone());
  WrittenView view{function_.get(), {}};
  if (GradMode::is_enabled()) {
    view.result.function =
        IntrusivePtr<Node>(new ViewOfBase({IntrusivePtr<Node>(this), 0}, whole.impl(), slice, view_offset_));
  }
  GradList inner;
  {
    const WrittenViewGuard running(view);
    inner = function_->apply(std::move(argument));
  }
  for (std::size_t i = 0; i < results.size() && i < inner.size(); ++i) {
    if (!task_should_compute_output(i)) continue;
    if (i > 0) {
      results[i] = std::move(inner[i]);
      continue;
    }
    if (inner[i].defined()) {
      slice.copy_(inner[i]);
    } else {
      slice.zero_();
    }
    results[i] = whole;
  }
  return results;
}

}  // namespace

IntrusivePtr<Node> write_through_view(const Tensor& base, const Tensor& view, IntrusivePtr<Node> function) {
  return IntrusivePtr<Node>(new CopySlices(base, view, std::move(function)));
}

IntrusivePtr<Node> view_of_base(Edge of_base, const Tensor& base, const Tensor& view) {
  return IntrusivePtr<Node>(
      new ViewOfBase(std::move(of_base), base.impl(), view, view.storage_offset() - base.storage_offset()));
}

Edge edge_of_result(Node& function, std::uint32_t number) {
  if (written_view && written_view->function == &function && written_view->result.function) {
    return written_view->result;
  }
  return {IntrusivePtr<Node>(&function), number};
}

}  // namespace tenon::autograd
