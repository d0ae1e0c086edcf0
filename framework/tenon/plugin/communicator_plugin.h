// What a plugin that supplies a communicator includes: the plugin boundary together with the contract of communicators.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>
#include <tenon/core/options.h>
#include <tenon/plugin/descriptor.h>
#include <tenon/plugin/host.h>
