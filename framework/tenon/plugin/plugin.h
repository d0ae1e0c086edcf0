// The plugin boundary: C at the door, C++ in the room.
//
// A plugin exports one symbol, its descriptor, which names a function that registers what the plugin supplies with the
// Host. After that everything is the C++ interfaces of core, memory, device and kernel.
//
//   descriptor.h        the symbol, the ABI version, TENON_PLUGIN
//   host.h              what the register function talks to
//   allocator_plugin.h  TENON_ALLOCATOR; core and memory only
//   backend_plugin.h    devices and kernels besides; a backend includes it in place of this header
//   communicator_plugin.h  what lets processes compute together; so does a communicator
//
// This header is the first three of them: all that an allocator needs.
#pragma once

#include <tenon/plugin/allocator_plugin.h>
#include <tenon/plugin/descriptor.h>
#include <tenon/plugin/host.h>
