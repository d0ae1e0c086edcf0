// ATen/cuda/CUDAContext.h of libtorch: current streams.
#pragma once

#include <c10/cuda/CUDAStream.h>
