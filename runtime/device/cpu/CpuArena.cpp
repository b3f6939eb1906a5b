//===- CpuArena.cpp - an arena in this process's memory -------------------===//
#include "runtime/device/cpu/CpuArena.h"

#include "core/Error.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace ds::runtime {
namespace {

uint64_t roundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

uint64_t pageBytes() {
  static const uint64_t bytes = uint64_t(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Where a live arena's pages and guards lie, readable from a signal handler. More arenas than entries are legal; the
/// guards of the rest still stop a stray access, only without a name.
struct GuardedRange {
  std::atomic<const std::byte *> first = nullptr, end = nullptr;
  std::array<char, 16> space{};
};
std::array<GuardedRange, 64> guardedRanges;

void remember(const std::byte *first, const std::byte *end, const std::string &space) {
  for (GuardedRange &range : guardedRanges) {
    const std::byte *none = nullptr;
    if (!range.end.compare_exchange_strong(none, end))
      continue;
    std::memcpy(range.space.data(), space.data(), std::min(space.size(), range.space.size() - 1));
    range.first = first;
    return;
  }
}

void forget(const std::byte *first) {
  for (GuardedRange &range : guardedRanges)
    if (range.first == first) {
      range.first = nullptr;
      range.end = nullptr;
    }
}

} // namespace

CpuArena::CpuArena(const std::string &space, uint64_t bytes, uint64_t alignment, std::atomic<uint64_t> &counter)
    : bytes_(bytes), counter_(counter) {
  const uint64_t page = pageBytes(), body = roundUp(bytes, page);
  const uint64_t slack = alignment > page ? alignment : 0;
  mappingBytes_ = page + slack + body + page;
  mapping_ = ::mmap(nullptr, mappingBytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED)
    throw Error("the " + space + " arena of " + std::to_string(bytes) +
                " bytes cannot be mapped: " + std::strerror(errno));
  const auto address = reinterpret_cast<uintptr_t>(mapping_);
  base_ = static_cast<std::byte *>(mapping_) + (roundUp(address + page, std::max(alignment, page)) - address);
  if (body > 0 && ::mprotect(base_, body, PROT_READ | PROT_WRITE) != 0) {
    const int code = errno;
    ::munmap(mapping_, mappingBytes_);
    throw Error("the " + space + " arena of " + std::to_string(bytes) +
                " bytes cannot be made writable: " + std::strerror(code));
  }
  // Fewer entries for the TLB, and fewer segments of what disks read and write (docs/nvme.md). Where the kernel
  // refuses, pages are small.
  (void)::madvise(base_, body, MADV_HUGEPAGE);
  remember(base_, base_ + body, space);
  counter_ += bytes;
}

CpuArena::~CpuArena() {
  counter_ -= bytes_;
  forget(base_);
  ::munmap(mapping_, mappingBytes_);
}

uint64_t CpuArena::touchedBytes() const noexcept {
  const uint64_t page = pageBytes(), pages = roundUp(bytes_, page) / page;
  std::array<unsigned char, 4096> resident;
  uint64_t touched = 0;
  for (uint64_t first = 0; first < pages; first += resident.size()) {
    const uint64_t count = std::min<uint64_t>(resident.size(), pages - first);
    if (::mincore(base_ + first * page, count * page, resident.data()) != 0)
      return 0;
    for (uint64_t i = 0; i < count; ++i)
      touched += resident[i] & 1 ? page : 0;
  }
  return std::min(touched, bytes_); // the last page is not all the arena's
}

const char *guardPageOwner(const void *address) noexcept {
  const auto *byte = static_cast<const std::byte *>(address);
  for (const GuardedRange &range : guardedRanges) {
    const std::byte *first = range.first, *end = range.end;
    if (first == nullptr || end == nullptr)
      continue;
    if ((byte >= first - pageBytes() && byte < first) || (byte >= end && byte < end + pageBytes()))
      return range.space.data();
  }
  return nullptr;
}

} // namespace ds::runtime
