"""Tenon's allocators inside PyTorch.

    import tenon_torch
    tenon_torch.use("mortise")          # before the first tensor on the GPU
    ...
    print(tenon_torch.memory_summary())

PyTorch takes another allocator only before its own has served, and then refuses torch.cuda.memory_stats() and the like:
their counterparts are here, with PyTorch's names, keys and meanings. Sizes are bytes; `device` is an index, a torch.device
or its name, the current device where it is left out. Needs the standard library and torch.
"""
import ctypes
import json
import os
import pathlib
import pickle
import tempfile

LIBRARY = "libtenon_pytorch_allocator.so"
_library = None
_allocator = None  # PyTorch keeps a plain pointer to it


class TenonError(RuntimeError):
    """What Tenon says about a call that failed."""


def _candidates():
    here = pathlib.Path(__file__).resolve().parent
    if "TENON_TORCH_LIBRARY" in os.environ:
        yield pathlib.Path(os.environ["TENON_TORCH_LIBRARY"])
        return
    # As installed (lib/tenon/python), beside it, and in a checkout (compat/pytorch).
    yield from (here.parent.parent / LIBRARY, here / LIBRARY, here.parent.parent / "build/release/lib" / LIBRARY)


def library_path():
    """The library that PyTorch loads: TENON_TORCH_LIBRARY, or where this file was installed or built."""
    places = list(_candidates())
    for place in places:
        if place.is_file():
            return str(place)
    raise TenonError("there is no " + LIBRARY + " in " + ", ".join(str(place.parent) for place in places)
                     + "; build the target tenon_pytorch_allocator, or set TENON_TORCH_LIBRARY to its path")


def load(path=None):
    """The library, loaded once; `path` names another one the first time."""
    global _library
    if _library is not None:
        return _library
    loaded = ctypes.CDLL(path or library_path())
    text, number = ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
            ("configure", number, [text]), ("last_error", text, []), ("allocator", text, [number]),
            ("memory_stats", text, [number]), ("memory_summary", text, [number, number]),
            ("reset_peak_memory_stats", number, [number]), ("reset_accumulated_memory_stats", number, [number]),
            ("empty_cache", ctypes.c_int64, [number]), ("record_memory_history", number, [number, ctypes.c_size_t]),
            ("dump_snapshot", number, [number, text])):
        function = getattr(loaded, "tenon_torch_" + name)
        function.restype, function.argtypes = result, arguments
    _library = loaded
    return loaded


def _call(name, *arguments):
    """Raises TenonError for null and for -1."""
    library = load()
    result = getattr(library, "tenon_torch_" + name)(*arguments)
    if result is None or (isinstance(result, int) and result == -1):
        raise TenonError(library.tenon_torch_last_error().decode())
    return result.decode() if isinstance(result, bytes) else result


def _option(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def spec_of(allocator, options):
    """"caching", {"max_split_size": "128MiB"} -> "caching:max_split_size=128MiB"."""
    if not options:
        return allocator
    if allocator.endswith(".toml"):
        raise ValueError("options of an allocator from a TOML file belong into the file")
    settings = ",".join(f"{key}={_option(value)}" for key, value in options.items())
    return allocator + ("," if ":" in allocator else ":") + settings


def use(allocator=None, *, library=None, **options):
    """Switches PyTorch to an allocator of Tenon's: before its own has given out any memory, once in a process.

    `allocator` is a name ("mortise", "expandable"), a SPEC with options ("caching:max_split_size=128MiB"), the path of a
    plugin, or that of a TOML file of Tenon's; options may come as arguments, too. Left out: the environment variable
    TENON_ALLOCATOR, or `caching`. Raises TenonError for what Tenon refuses, RuntimeError where PyTorch's allocator is in use.
    """
    import torch

    global _allocator
    if _allocator is not None:
        raise TenonError("PyTorch is served by Tenon already; it cannot be switched a second time")
    loaded = load(library)
    if allocator is None:
        allocator = os.environ.get("TENON_ALLOCATOR") or ("caching" if options else None)
    if allocator is not None:
        _call("configure", spec_of(os.fspath(allocator), options).encode())
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(loaded._name, "tenon_torch_alloc", "tenon_torch_free")
    inner = pluggable.allocator()
    for setter, function in (
            ("set_init_fn", "init"), ("set_reset_fn", "reset"), ("set_memory_fraction_fn", "memory_fraction"),
            ("set_record_stream_fn", "record_stream"), ("set_begin_allocate_to_pool", "begin_allocate_to_pool"),
            ("set_end_allocate_to_pool_fn", "end_allocate_to_pool"), ("set_release_pool", "release_pool")):
        pointer = ctypes.cast(getattr(loaded, "tenon_torch_" + function), ctypes.c_void_p).value
        getattr(inner, setter)(pointer)
    torch.cuda.memory.change_current_allocator(pluggable)
    _allocator = pluggable


def answer_as_torch():
    """torch.cuda.memory_stats(), and what PyTorch makes of it (memory_allocated(), memory_summary() …), and the resets of peaks
    and sums answer from Tenon from now on, for programs that call them."""
    import torch

    for name in ("memory_stats", "reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        for module in (torch.cuda, torch.cuda.memory):
            setattr(module, name, globals()[name])


def _index(device):
    if isinstance(device, int):
        return device
    import torch

    if device is not None:
        index = torch.device(device).index
        if index is not None:
            return index
    return torch.cuda.current_device()


def allocator_name(device=None):
    """The allocator in service: "mortise"."""
    return _call("allocator", _index(device))


def memory_stats(device=None):
    """The keys of torch.cuda.memory_stats(), and the calls to the device as "tenon.device_calls", …"""
    return json.loads(_call("memory_stats", _index(device)))


def memory_allocated(device=None):
    """Bytes in live blocks, after the allocator's rounding."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_requested(device=None):
    """Bytes in live blocks, as they were asked for."""
    return memory_stats(device)["requested_bytes.all.current"]


def max_memory_requested(device=None):
    return memory_stats(device)["requested_bytes.all.peak"]


def memory_reserved(device=None):
    """Bytes taken from the device: live blocks and what is cached."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    _call("reset_peak_memory_stats", _index(device))


def reset_accumulated_memory_stats(device=None):
    _call("reset_accumulated_memory_stats", _index(device))


def memory_summary(device=None, abbreviated=False):
    """The table of torch.cuda.memory_summary()."""
    return _call("memory_summary", _index(device), int(abbreviated))


def empty_cache(device=None):
    """Gives cached memory of the device back; the bytes. torch.cuda.empty_cache() does so on all devices."""
    return _call("empty_cache", _index(device))


def record_memory_history(max_entries=1_000_000, device=None):
    """Keeps the newest events for dump_snapshot(), without call stacks; 0 or None ends it."""
    _call("record_memory_history", _index(device), max_entries or 0)


def dump_snapshot(path, device=None):
    """Writes what torch.cuda.memory._dump_snapshot() would: for `tenon replay`, or PyTorch's viewer."""
    _call("dump_snapshot", _index(device), os.fspath(path).encode())


def snapshot(device=None):
    """What torch.cuda.memory._snapshot() would return: segments with their blocks, and the history where one is kept."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memory.pickle")
        dump_snapshot(path, device)
        with open(path, "rb") as file:
            return pickle.load(file)
