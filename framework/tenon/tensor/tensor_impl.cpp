// TensorImpl: layout questions.
#include <tenon/core/error.h>
#include <tenon/tensor/factory.h>
#include <tenon/tensor/live_tensors.h>
#include <tenon/tensor/shape/extent.h>
#include <tenon/tensor/tensor_impl.h>

#include <algorithm>

namespace tenon {

AutogradMetaBase::~AutogradMetaBase() = default;

TensorImpl::~TensorImpl() {
  if (scopes::are_lives_wanted()) [[unlikely]]
    forget_tensor(this);
  delete autograd_meta();
}

void TensorImpl::set_storage(IntrusivePtr<StorageImpl> storage, Dtype dtype) {
  const ListedChange change;
  storage_.swap(storage);
  dtype_ = dtype;
}

std::uint32_t TensorImpl::VersionHandle::current_version() const {
  if (impl_.is_inference()) throw Error("Inference tensors do not track version counter.");
  return impl_.version();
}

void TensorImpl::check_inference_write() {
  if (making_inference_tensors) return;
  throw Error(
      "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
      "tensor before doing inplace update.");
}

void TensorImpl::set_strided(const Dims& sizes, const Dims& strides, std::int64_t offset) {
  numel_ = element_count(sizes);  // throws before anything has changed
  sizes_ = sizes;
  strides_ = strides;
  offset_ = offset;
  is_contiguous_ = true;
  std::int64_t expected = 1;
  for (int i = sizes.rank() - 1; i >= 0 && numel_ > 0; --i) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) {
      is_contiguous_ = false;
      break;
    }
    expected *= sizes[i];
  }
}

namespace {

/// Dimensions of size > 1 by rising stride.
int order_by_stride(const Dims& sizes, const Dims& strides, int* order) {
  int count = 0;
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] > 1) order[count++] = i;
  }
  std::sort(order, order + count, [&](int a, int b) { return strides[a] < strides[b]; });
  return count;
}

}  // namespace

bool TensorImpl::is_non_overlapping_and_dense() const {
  if (is_contiguous_) return true;
  int order[kMaxRank];
  const int count = order_by_stride(sizes_, strides_, order);
  std::int64_t expected = 1;
  for (int i = 0; i < count; ++i) {
    if (strides_[order[i]] != expected) return false;
    expected *= sizes_[order[i]];
  }
  return true;
}

bool TensorImpl::may_overlap_itself() const {
  if (is_contiguous_ || numel_ == 0) return false;
  int order[kMaxRank];
  const int count = order_by_stride(sizes_, strides_, order);
  std::int64_t reach = 0;  // the farthest offset that the smaller strides get to
  for (int i = 0; i < count; ++i) {
    if (strides_[order[i]] <= reach) return true;
    reach += strides_[order[i]] * (sizes_[order[i]] - 1);
  }
  return false;
}

}  // namespace tenon
