//===- CpuDevice.cpp - the processor as a device --------------------------===//
#include "runtime/device/cpu/CpuDevice.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/CpuArena.h"
#include "runtime/device/cpu/CpuQueue.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ds::runtime {

std::unique_ptr<Arena> CpuDevice::createArena(const std::string &space, uint64_t bytes, uint64_t alignment) {
  if (space == "nvme")
    return nvme_.createArena(bytes, alignment);
  if (space != "device" && space != "host")
    throw Error("the cpu device has no space " + space + ": it has device, host and nvme");
  return std::make_unique<CpuArena>(space, bytes, alignment, space == "device" ? deviceBytes_ : hostBytes_);
}

std::unique_ptr<Queue> CpuDevice::createQueue(const QueueOptions &options) {
  return std::make_unique<CpuQueue>(*this, options);
}

uint64_t CpuDevice::allocatedBytes(const std::string &space) const noexcept {
  if (space == "device")
    return deviceBytes_;
  if (space == "host")
    return hostBytes_;
  return space == "nvme" ? nvme_.bytes() : 0;
}

void CpuDevice::write(void *target, std::span<const std::byte> source) noexcept {
  if (const Status status = nvme_.copy(target, source.data(), source.size()); !status.ok())
    fail(status);
}

void CpuDevice::read(std::span<std::byte> target, const void *source) noexcept {
  if (const Status status = nvme_.copy(target.data(), source, target.size()); !status.ok())
    fail(status);
}

void CpuDevice::fail(const Status &status) noexcept {
  if (!guard_.failed())
    (void)guard_.report(agree_ ? agree_(status) : status);
}

} // namespace ds::runtime
