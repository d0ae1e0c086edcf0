// torch/expanding_array.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
