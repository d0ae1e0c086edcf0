// torch/nn/pimpl.h of libtorch: a module's holder from its implementation.
#pragma once

#include <tenon/nn/containers/module_holder.h>

#define TORCH_MODULE_IMPL(Name, ImplType) TENON_MODULE_IMPL(Name, ImplType)
#define TORCH_MODULE(Name) TENON_MODULE(Name)
