// Out of memory as PyTorch's exception: its class is looked up in libc10, by the names of the C++ ABI that it has
// there.
//
// Note [PyTorch's exception without its headers]: PyTorch makes torch.OutOfMemoryError of a c10::OutOfMemoryError only,
// a class of libc10 that this library neither links nor includes. What is needed of it is a constructor, the type, and
// the table of virtual functions, through which std::exception's destructor is the right one. The object gets more room
// than it needs, since its size is not known here: some 200 bytes in PyTorch 2.11 and 2.15. Where one of the names is
// missing the answer is an exception of the standard library.
#include "raise.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <typeinfo>
#include <utility>

namespace tenon::pytorch {

namespace {

/// As c10::SourceLocation: passed in memory, as any of its size.
struct SourceLocation {
  const char* function;
  const char* file;
  std::uint32_t line;
};
using Construct = void (*)(void* self, SourceLocation where, std::string message);

constexpr std::size_t kRoomBytes = 4096;

class OutOfMemoryOfTenon final : public std::bad_alloc {
 public:
  explicit OutOfMemoryOfTenon(std::string message) : message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

struct OutOfMemoryOfPytorch {
  Construct construct = nullptr;
  void* virtuals = nullptr;  ///< to be put in place after a constructor of the base class; null after its own
  std::type_info* type = nullptr;
  explicit operator bool() const { return construct != nullptr && type != nullptr; }
};

#define TENON_C10_ARGUMENTS "ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

/// A symbol of a library of PyTorch's that is loaded, which stays so: what was found is used for good.
void* symbol_of_pytorch(const char* name) {
  for (const char* const file : {"libc10.so", "libc10_cuda.so", "libtorch_cuda.so", "libtorch_python.so"}) {
    if (void* const library = ::dlopen(file, RTLD_LAZY | RTLD_NOLOAD)) {
      if (void* const found = ::dlsym(library, name)) return found;
    }
  }
  return nullptr;
}

OutOfMemoryOfPytorch look_up() {
  OutOfMemoryOfPytorch found;
  found.type = static_cast<std::type_info*>(symbol_of_pytorch("_ZTIN3c1016OutOfMemoryErrorE"));
  if (void* const own = symbol_of_pytorch("_ZN3c1016OutOfMemoryErrorC1" TENON_C10_ARGUMENTS)) {
    found.construct = reinterpret_cast<Construct>(own);
  } else if (void* const virtuals = symbol_of_pytorch("_ZTVN3c1016OutOfMemoryErrorE")) {
    found.virtuals = static_cast<void**>(virtuals) + 2;  // behind the offset to the top and the type
    found.construct = reinterpret_cast<Construct>(symbol_of_pytorch("_ZN3c105ErrorC1" TENON_C10_ARGUMENTS));
  }
  return found;
}

void destroy(void* exception) { static_cast<std::exception*>(exception)->~exception(); }

}  // namespace

void raise_out_of_memory(const std::string& message) {
  static const OutOfMemoryOfPytorch pytorch = look_up();
  if (!pytorch) throw OutOfMemoryOfTenon(message);
  void* const exception = abi::__cxa_allocate_exception(kRoomBytes);
  try {
    pytorch.construct(exception, {"tenon_torch_alloc", __FILE__, __LINE__}, message);
  } catch (...) {
    abi::__cxa_free_exception(exception);
    throw OutOfMemoryOfTenon(message);
  }
  if (pytorch.virtuals != nullptr) std::memcpy(exception, &pytorch.virtuals, sizeof pytorch.virtuals);
  abi::__cxa_throw(exception, pytorch.type, &destroy);
}

}  // namespace tenon::pytorch
