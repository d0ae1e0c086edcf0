// What a plugin that supplies a backend includes: the plugin boundary together with the contracts of devices and
// kernels.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/kernel/kernel.h>
#include <tenon/plugin/descriptor.h>
#include <tenon/plugin/host.h>
