// Names of dtypes, and the default dtype.
#include <tenon/tensor/libtorch/types.h>

#include <atomic>

namespace tenon {
namespace {
std::atomic<Dtype> default_value{Dtype::kFloat32};
}

const char* toString(Dtype dtype) {
  constexpr const char* kNames[kDtypeCount] = {"Bool", "Byte", "Char",     "Short", "Int",
                                               "Long", "Half", "BFloat16", "Float", "Double"};
  return kNames[static_cast<int>(dtype)];
}

const char* TypeMeta::name() const {
  constexpr const char* kNames[kDtypeCount] = {"bool",     "unsigned char", "signed char",   "short int", "int",
                                               "long int", "c10::Half",     "c10::BFloat16", "float",     "double"};
  return kNames[static_cast<int>(dtype_)];
}

TypeMeta get_default_dtype() { return default_value.load(std::memory_order_relaxed); }

void set_default_dtype(TypeMeta dtype) { default_value.store(dtype, std::memory_order_relaxed); }

}  // namespace tenon
