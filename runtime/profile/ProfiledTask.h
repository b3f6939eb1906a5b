//===- ProfiledTask.h - how long a command takes --------------------------===//
#pragma once

#include "runtime/device/Task.h"
#include "runtime/profile/Profile.h"

#include <memory>

namespace ds::runtime {

/// A task that runs `inner` and adds its time to `clock`, which outlives it. An accelerator is waited for.
std::unique_ptr<Task> profiled(CommandClock &clock, Task &inner);

} // namespace ds::runtime
