//===- NvmeArena.cpp - an arena in a file ---------------------------------===//
#include "runtime/device/cpu/NvmeArena.h"

#include "core/Error.h"
#include "runtime/device/cpu/CpuDevice.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>

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

} // namespace ds::runtime
