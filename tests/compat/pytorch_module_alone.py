"""tenon_torch.py with a stand-in of torch, which keeps what it is told and calls it as PyTorch does."""
import ctypes
import os
import sys
import tempfile
import types

told = {}


class Pluggable:
    """As torch.cuda.memory.CUDAPluggableAllocator and what its allocator() gives."""

    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        told["alloc"] = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)((alloc, library))
        told["free"] = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)((free, library))

    def allocator(self):
        return self

    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda pointer: told.__setitem__(name, pointer)


torch = types.ModuleType("torch")
torch.cuda = types.SimpleNamespace(
    current_device=lambda: 0,
    memory=types.SimpleNamespace(CUDAPluggableAllocator=Pluggable,
                                 change_current_allocator=lambda one: told.__setitem__("current", one)))
torch.device = lambda name: types.SimpleNamespace(index=int(name.split(":")[1]) if ":" in name else None)
sys.modules["torch"] = torch

import tenon_torch  # noqa: E402 (after its torch)


def refused(words, work):
    try:
        work()
    except (tenon_torch.TenonError, ValueError) as error:
        assert words in str(error), error
        return
    raise AssertionError(f"not refused: {words}")


assert tenon_torch.spec_of("caching", {}) == "caching"
assert tenon_torch.spec_of("caching", {"max_split_size": "1MiB", "x": True}) == "caching:max_split_size=1MiB,x=true"
assert tenon_torch.spec_of("caching:x=1", {"y": 2}) == "caching:x=1,y=2"
refused("into the file", lambda: tenon_torch.spec_of("memory.toml", {"x": 1}))
refused("mortise", lambda: tenon_torch.use("mortis"))
refused("max_split_size", lambda: tenon_torch.use("caching", max_split_siez="1MiB"))
os.environ["TENON_ALLOCATOR"] = "expandabel"
refused("expandable", tenon_torch.use)
assert "current" not in told, "PyTorch was switched to what was refused"

tenon_torch.use("caching", max_split_size="128MiB")
assert set(told) == {"alloc", "free", "current", "set_init_fn", "set_reset_fn", "set_memory_fraction_fn", "set_record_stream_fn",
                     "set_begin_allocate_to_pool", "set_end_allocate_to_pool_fn", "set_release_pool"}, told
assert all(pointer for pointer in told.values())
refused("already", lambda: tenon_torch.use("mortise"))

block = told["alloc"](1000, 0, None)
assert block and block % 512 == 0
assert tenon_torch.allocator_name() == "caching"
assert tenon_torch.memory_allocated() == tenon_torch.memory_allocated("cuda:0") == tenon_torch.memory_allocated(0) == 1024
assert tenon_torch.memory_requested("cuda") == tenon_torch.max_memory_requested() == 1000
assert tenon_torch.memory_reserved() == tenon_torch.max_memory_reserved() == 2 << 20
assert tenon_torch.memory_stats()["max_split_size"] == 128 << 20
assert tenon_torch.memory_stats()["tenon.device_allocations"] == 1
assert "Allocated memory" in tenon_torch.memory_summary(abbreviated=True)
assert len(tenon_torch.memory_summary()) > len(tenon_torch.memory_summary(abbreviated=True))
tenon_torch.record_memory_history(100)
with tempfile.TemporaryDirectory() as folder:
    tenon_torch.dump_snapshot(folder + "/memory.pickle")
    assert b"active_allocated" in open(folder + "/memory.pickle", "rb").read()
segments = tenon_torch.snapshot()["segments"]
assert [segment["total_size"] for segment in segments] == [2 << 20] and segments[0]["blocks"][0]["requested_size"] == 1000
tenon_torch.record_memory_history(None)
told["free"](block, 1000, 0, None)
assert tenon_torch.memory_allocated() == 0 and tenon_torch.max_memory_allocated() == 1024
tenon_torch.reset_peak_memory_stats()
assert tenon_torch.max_memory_allocated() == 0
assert tenon_torch.memory_stats()["allocation.all.allocated"] == 1
tenon_torch.reset_accumulated_memory_stats()
assert tenon_torch.memory_stats()["allocation.all.allocated"] == 0
assert tenon_torch.empty_cache() == 2 << 20 and tenon_torch.memory_reserved() == 0
refused("cuda:9", lambda: tenon_torch.memory_stats(9))
print("the module alone: right")
