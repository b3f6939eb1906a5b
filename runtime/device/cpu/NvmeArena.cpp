//===- NvmeArena.cpp - an arena in a file ---------------------------------===//
#include "runtime/device/cpu/NvmeArena.h"

#include "core/Error.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace ds::runtime {

NvmeArena::NvmeArena(const NvmePlace &place, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter)
    : file_(place.folder, place.rank, bytes, place.options), bytes_(bytes), counter_(counter),
      mappingBytes_(bytes + std::max<uint64_t>(alignment, 4096)) {
  mapping_ = ::mmap(nullptr, mappingBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED)
    throw Error("the nvme arena of " + std::to_string(bytes) +
                " bytes has no room in the address space: " + std::strerror(errno));
  const auto address = reinterpret_cast<uintptr_t>(mapping_);
  base_ = static_cast<std::byte *>(mapping_) + ((address + alignment - 1) / alignment * alignment - address);
  counter_ += bytes;
}

NvmeArena::~NvmeArena() {
  counter_ -= bytes_;
  ::munmap(mapping_, mappingBytes_);
}

void NvmeArena::pair(uint64_t first, uint64_t second, uint64_t bytes) {
  for (const uint64_t begin : {first, second})
    moved_.insert(std::ranges::upper_bound(moved_, begin, {}, &Moved::begin), {begin, begin + bytes, begin});
}

void NvmeArena::exchange(uint64_t first, uint64_t second) noexcept {
  std::swap(rangeAt(first)->place, rangeAt(second)->place);
}

std::vector<NvmeArena::Moved>::iterator NvmeArena::rangeAt(uint64_t offset) noexcept {
  const auto next = std::ranges::upper_bound(moved_, offset, {}, &Moved::begin);
  return next == moved_.begin() ? moved_.end() : next - 1;
}

uint64_t NvmeArena::placeOf(const void *address) noexcept {
  const auto offset = uint64_t(static_cast<const std::byte *>(address) - base_);
  const auto range = rangeAt(offset);
  return range == moved_.end() || offset >= range->end ? offset : range->place + (offset - range->begin);
}

} // namespace ds::runtime
