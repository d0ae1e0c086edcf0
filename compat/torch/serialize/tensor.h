// torch/serialize/tensor.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
