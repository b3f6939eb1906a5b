//===- CpuDevice.cpp - the processor as a device --------------------------===//
#include "runtime/device/cpu/CpuDevice.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Queue.h"
#include "runtime/device/cpu/CpuArena.h"
#include "runtime/device/cpu/CpuQueue.h"
#include "runtime/device/cpu/NvmeArena.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace ds::runtime {

std::unique_ptr<Arena> CpuDevice::createArena(const std::string &space, uint64_t bytes, uint64_t alignment) {
  if (space == "nvme")
    return createFile(bytes, alignment);
  if (space != "device" && space != "host")
    throw Error("the cpu device has no space " + space + ": it has device, host and nvme");
  return std::make_unique<CpuArena>(space, bytes, alignment, space == "device" ? deviceBytes_ : hostBytes_);
}

std::unique_ptr<Arena> CpuDevice::createFile(uint64_t bytes, uint64_t alignment) {
  if (!nvmePlace_)
    throw Error("the plan keeps " + std::to_string(bytes) + " bytes on NVMe, but no folder is given for them");
  if (nvme_ != nullptr)
    throw Error("a rank has one arena in space nvme, and the plan has a second");
  auto arena = std::make_unique<NvmeArena>(*nvmePlace_, bytes, alignment, nvmeBytes_);
  nvme_ = arena.get();
  return arena;
}

std::unique_ptr<Queue> CpuDevice::createQueue(const QueueOptions &options) {
  return std::make_unique<CpuQueue>(*this, options);
}

uint64_t CpuDevice::allocatedBytes(const std::string &space) const noexcept {
  if (space == "device")
    return deviceBytes_;
  if (space == "host")
    return hostBytes_;
  return space == "nvme" ? nvmeBytes_.load() : 0;
}

std::string CpuDevice::note() const {
  return nvme_ == nullptr ? ""
                          : "rank " + std::to_string(nvmePlace_->rank) + " keeps " + std::to_string(nvme_->bytes()) +
                                " bytes in a file of " + nvmePlace_->folder + ": " + nvme_->note();
}

void CpuDevice::write(void *target, std::span<const std::byte> source) noexcept {
  if (const Status status = copy(target, source.data(), source.size()); !status.ok())
    fail(status);
}

void CpuDevice::read(std::span<std::byte> target, const void *source) noexcept {
  if (const Status status = copy(target.data(), source, target.size()); !status.ok())
    fail(status);
}

bool CpuDevice::isInFile(const void *address) const noexcept { return nvme_ != nullptr && nvme_->holds(address); }

Status CpuDevice::copy(void *target, const void *source, uint64_t bytes) noexcept {
  if (bytes == 0)
    return Status::success();
  if (isInFile(target))
    return nvme_->write(target, {static_cast<const std::byte *>(source), bytes});
  if (isInFile(source))
    return nvme_->read({static_cast<std::byte *>(target), bytes}, source);
  std::memmove(target, source, bytes);
  return Status::success();
}

void CpuDevice::fill(void *target, uint8_t value, uint64_t bytes) noexcept {
  if (bytes > 0 && !isInFile(target)) {
    std::memset(target, value, bytes);
    return;
  }
  std::array<std::byte, 4096> piece;
  piece.fill(std::byte(value));
  for (uint64_t at = 0; at < bytes; at += piece.size())
    write(static_cast<std::byte *>(target) + at, std::span(piece).first(std::min<uint64_t>(piece.size(), bytes - at)));
}

void CpuDevice::fail(const Status &status) noexcept {
  if (!guard_.failed())
    (void)guard_.report(agree_ ? agree_(status) : status);
}

} // namespace ds::runtime
