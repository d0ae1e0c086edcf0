// torch/nn/modules/container/named_any.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
