// torch/nn/modules/container/sequential.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
