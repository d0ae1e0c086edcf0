// torch/data/dataloader_options.h of libtorch: everything is in one header here.
#pragma once

#include <torch/torch.h>
