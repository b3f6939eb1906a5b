//===- DelayedDevice.h - queues that are late at random --------------------===//
#pragma once

#include "runtime/device/Device.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace ds::mutation {

/// A CPU device whose commands, now and then, begin and end up to half a millisecond late, as `seed` says: what nothing
/// orders happens in another order with every seed.
std::unique_ptr<runtime::Device> delayedDevice(uint64_t seed, std::optional<runtime::NvmePlace> nvme);

} // namespace ds::mutation
