// Tensors as buffers of a communicator.
#include <tenon/nn/distributed/collectives.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/purpose.h>
#include <tenon/ops/ops.h>

#include <utility>

namespace tenon::distributed {
namespace {

/// Whether the communicator reads and writes this tensor's memory as it lies.
bool is_taken_as_it_is(const Communicator& ranks, const Tensor& tensor) {
  const std::string kind = ranks.device_kind();
  const bool is_reached = kind.empty() ? tensor.device().is_cpu() : tensor.device().type().name() == kind;
  return is_reached && tensor.is_contiguous();
}

/// A contiguous tensor of the same values where the communicator reaches it.
Tensor reached(const Communicator& ranks, const Tensor& tensor) {
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kWorkspace);
  Tensor values = tensor.detach();
  if (is_taken_as_it_is(ranks, values)) return values;
  const Tensor near = ranks.device_kind().empty() ? values.to(kCPU) : values;
  return near.is_same(values) || !near.is_contiguous() ? near.clone(MemoryFormat::Contiguous) : near;
}

CommBuffer buffer_of(const Tensor& tensor) {
  return {.data = tensor.data_ptr(), .count = static_cast<std::size_t>(tensor.numel()), .dtype = tensor.scalar_type()};
}

/// Where the communicator works on a device: after what this thread has queued there.
CommOptions after_what_is_queued(const Tensor& buffer, CommOptions options) {
  if (!buffer.device().is_cpu() && options.stream == StreamRef{}) options.stream = current_stream(buffer.device());
  return options;
}

/// Work whose buffers are tensors: they live as long, and what was copied is copied back.
class TensorWork final : public Work {
 public:
  TensorWork(std::shared_ptr<Work> work, Tensor target, Tensor buffer, Tensor input)
      : work_(std::move(work)), target_(std::move(target)), buffer_(std::move(buffer)), input_(std::move(input)) {}
  ~TensorWork() override {
    // The operation writes to the buffer until its end.
    try {
      work_->wait();
    } catch (const Error&) {  // whoever waits for it next is told
    }
  }

  bool is_completed() override { return work_->is_completed(); }
  void wait(std::chrono::milliseconds timeout) override {
    work_->wait(timeout);
    if (std::exchange(is_copied_back_, true) || buffer_.data_ptr() == target_.data_ptr()) return;
    const NoGradGuard no_grad;
    target_.detach().copy_(buffer_);
  }
  double seconds() const override { return work_->seconds(); }

 private:
  std::shared_ptr<Work> work_;
  Tensor target_, buffer_, input_;
  bool is_copied_back_ = false;
};

}  // namespace

std::shared_ptr<Work> all_reduce(Communicator& ranks, const Tensor& tensor, ReduceOp op, const CommOptions& options) {
  const Tensor buffer = reached(ranks, tensor);
  return std::make_shared<TensorWork>(ranks.all_reduce(buffer_of(buffer), op, after_what_is_queued(buffer, options)),
                                      tensor, buffer, Tensor());
}

std::shared_ptr<Work> broadcast(Communicator& ranks, const Tensor& tensor, int root, const CommOptions& options) {
  const Tensor buffer = reached(ranks, tensor);
  return std::make_shared<TensorWork>(ranks.broadcast(buffer_of(buffer), root, after_what_is_queued(buffer, options)),
                                      tensor, buffer, Tensor());
}

std::shared_ptr<Work> all_gather_into_tensor(Communicator& ranks, const Tensor& output, const Tensor& input,
                                             const CommOptions& options) {
  const Tensor whole = reached(ranks, output), share = reached(ranks, input);
  return std::make_shared<TensorWork>(
      ranks.all_gather(buffer_of(whole), buffer_of(share), after_what_is_queued(whole, options)), output, whole, share);
}

std::shared_ptr<Work> reduce_scatter_tensor(Communicator& ranks, const Tensor& output, const Tensor& input, ReduceOp op,
                                            const CommOptions& options) {
  const Tensor share = reached(ranks, output), whole = reached(ranks, input);
  return std::make_shared<TensorWork>(
      ranks.reduce_scatter(buffer_of(share), buffer_of(whole), op, after_what_is_queued(whole, options)), output, share,
      whole);
}

namespace {

/// The tensors, several of one dtype and device at a time behind each other, through `send`.
template <class Send>
void coalesced(const std::vector<Tensor>& tensors, std::size_t bucket_bytes, Send send) {
  const NoGradGuard no_grad;
  PurposeGuard purpose(Purpose::kWorkspace);
  for (std::size_t begin = 0; begin < tensors.size();) {
    const Tensor& first = tensors[begin];
    std::vector<Tensor> flat;
    std::size_t end = begin, bytes = 0;
    for (; end < tensors.size(); ++end) {
      const Tensor& tensor = tensors[end];
      const std::size_t more = static_cast<std::size_t>(tensor.numel()) * size_of(tensor.scalar_type());
      const bool fits = tensor.scalar_type() == first.scalar_type() && tensor.device() == first.device() &&
                        (flat.empty() || bytes + more <= bucket_bytes);
      if (!fits) break;
      bytes += more;
      flat.push_back(tensor.detach().reshape({-1}));
    }
    const Tensor together = flat.size() == 1 ? flat.front().clone() : tenon::cat(flat);
    send(together)->wait();
    std::int64_t offset = 0;
    for (; begin < end; ++begin) {
      const Tensor& tensor = tensors[begin];
      tensor.detach().copy_(together.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
      offset += tensor.numel();
    }
  }
}

}  // namespace

void broadcast_coalesced(Communicator& ranks, const std::vector<Tensor>& tensors, int root, std::size_t bucket_bytes) {
  if (ranks.size() == 1) return;
  coalesced(tensors, bucket_bytes, [&](const Tensor& together) { return broadcast(ranks, together, root); });
}

void all_reduce_coalesced(Communicator& ranks, const std::vector<Tensor>& tensors, std::size_t bucket_bytes) {
  if (ranks.size() == 1) return;
  coalesced(tensors, bucket_bytes, [&](const Tensor& together) { return all_reduce(ranks, together); });
}

}  // namespace tenon::distributed
