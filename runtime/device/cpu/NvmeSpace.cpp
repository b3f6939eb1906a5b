//===- NvmeSpace.cpp - space "nvme" of one rank -----------------------------===//
#include "runtime/device/cpu/NvmeSpace.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/device/Arena.h"
#include "runtime/device/cpu/NvmeArena.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace ds::runtime {

std::unique_ptr<Arena> NvmeSpace::createArena(uint64_t bytes, uint64_t alignment) {
  if (!place_)
    throw Error("the plan keeps " + std::to_string(bytes) + " bytes on NVMe, but no folder is given for them");
  if (arena_ != nullptr)
    throw Error("a rank has one arena in space nvme, and the plan has a second");
  auto arena = std::make_unique<NvmeArena>(*place_, bytes, alignment, bytes_);
  arena_ = arena.get();
  return arena;
}

std::string NvmeSpace::note() const {
  return arena_ == nullptr ? ""
                           : "rank " + std::to_string(place_->rank) + " keeps " + std::to_string(arena_->bytes()) +
                                 " bytes in a file of " + place_->folder + ": " + arena_->note();
}

Status NvmeSpace::copy(void *target, const void *source, uint64_t bytes) noexcept {
  if (bytes == 0)
    return Status::success();
  if (holds(target))
    return arena_->write(target, {static_cast<const std::byte *>(source), bytes});
  if (holds(source))
    return arena_->read({static_cast<std::byte *>(target), bytes}, source);
  std::memmove(target, source, bytes);
  return Status::success();
}

Status NvmeSpace::fill(void *target, uint8_t value, uint64_t bytes) noexcept {
  if (bytes == 0)
    return Status::success();
  if (!holds(target)) {
    std::memset(target, value, bytes);
    return Status::success();
  }
  std::array<std::byte, 4096> piece;
  piece.fill(std::byte(value));
  Status status;
  for (uint64_t at = 0; at < bytes && status.ok(); at += piece.size())
    status = copy(static_cast<std::byte *>(target) + at, piece.data(), std::min<uint64_t>(piece.size(), bytes - at));
  return status;
}

} // namespace ds::runtime
