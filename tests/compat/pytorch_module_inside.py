"""tenon_torch.py inside a real torch whose device is emulated: PyTorch's own C++ calls Tenon and gets its exceptions."""
import ctypes

import torch

import tenon_torch

tenon_torch.use("caching")
pools = torch._C
pools._cuda_beginAllocateToPool(0, (0, 1))
pools._cuda_endAllocateToPool(0, (0, 1))
pools._cuda_releasePool(0, (0, 1))


def raised(kind, work):
    try:
        work()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind}")


assert "no open scope" in raised(RuntimeError, lambda: pools._cuda_endAllocateToPool(0, (0, 1)))

# An allocation as PyTorch's C++ would see it fail: its call of a pool's begin, with three numbers, is sent to the function
# that allocates, with a size, a device and a stream.
library = tenon_torch.load()
inner = tenon_torch._allocator.allocator()
inner.set_begin_allocate_to_pool(ctypes.cast(library.tenon_torch_alloc, ctypes.c_void_p).value)
pools._cuda_beginAllocateToPool(100, (0, 0))
assert tenon_torch.memory_requested(0) == 100
fraction = library.tenon_torch_memory_fraction
fraction.argtypes, fraction.restype = [ctypes.c_double, ctypes.c_int], None
fraction(1e-7, 0)
inner.set_begin_allocate_to_pool(ctypes.cast(library.tenon_torch_alloc, ctypes.c_void_p).value)
said = ""
for _ in range(40_000):  # until the segment that is there is full
    try:
        pools._cuda_beginAllocateToPool(100, (0, 0))
    except torch.OutOfMemoryError as error:
        said = str(error)
        break
assert "out of memory" in said and "cuda:0" in said, said
assert raised(torch.cuda.OutOfMemoryError, lambda: pools._cuda_beginAllocateToPool(100, (0, 0))) == said
assert tenon_torch.memory_stats(0)["num_ooms"] == 2
tenon_torch.answer_as_torch()
assert torch.cuda.memory_allocated(0) == tenon_torch.memory_allocated(0) > 0
assert torch.cuda.max_memory_reserved(0) == tenon_torch.max_memory_reserved(0) == 2 << 20
assert torch.cuda.memory_summary(0) == tenon_torch.memory_summary(0)
torch.cuda.reset_peak_memory_stats(0)
assert torch.cuda.memory.max_memory_allocated(0) == tenon_torch.memory_allocated(0)
print("the module inside torch", torch.__version__, ": right")
