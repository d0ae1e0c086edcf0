#!/usr/bin/env bash
# compat/pytorch/tenon_torch.py. `alone`: with a stand-in of torch. `inside`: in the torch of TENON_TORCH_PYTHON (python3 if
# unset), where that has one built for CUDA. Neither needs a GPU, the device is emulated.
set -euo pipefail
part=$1
: "${TENON_SOURCE_DIR:?is set by CTest}" "${TENON_BINARY_DIR:?is set by CTest}"

if ! command -v python3 >/dev/null; then
  echo "tenon_torch.py needs python3"
  exit 77
fi
if nm -D "$TENON_BINARY_DIR/lib/libtenon_pytorch_allocator.so" | grep -qE '__(asan|tsan|ubsan)_'; then
  echo "this build has sanitizers, which cannot be loaded into a python3 without them"
  exit 77
fi
export TENON_TORCH_LIBRARY=$TENON_BINARY_DIR/lib/libtenon_pytorch_allocator.so
emulated=$TENON_BINARY_DIR/tests/emulated_cuda
here=$TENON_SOURCE_DIR/tests/compat
unset TENON_ALLOCATOR

on_emulated_device() { # what PyTorch's libraries call of CUDA is emulated too
  TENON_PLUGIN_PATH=$emulated LD_PRELOAD=$emulated/libtenon_emulated_cuda.so \
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$TENON_SOURCE_DIR/compat/pytorch "$@"
}

if [ ! -e "$emulated/cuda.so" ]; then
  echo "the CUDA plugin was not built: there is no device to emulate"
  exit 77
fi
if [ "$part" = alone ]; then
  on_emulated_device python3 "$here/pytorch_module_alone.py"
  exit
fi
python=${TENON_TORCH_PYTHON:-python3}
if ! "$python" -c 'import torch, sys; sys.exit(not hasattr(torch._C, "_cuda_customAllocator"))' 2>/dev/null; then
  echo "$python has no torch with CUDA: set TENON_TORCH_PYTHON to one that has"
  exit 77
fi
on_emulated_device "$python" "$here/pytorch_module_inside.py"
