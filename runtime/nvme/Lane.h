//===- Lane.h - what one read or write holds while it runs ----------------===//
#pragma once

#include "core/Error.h"
#include "runtime/nvme/Block.h"
#include "runtime/nvme/BlockEngine.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace ds::runtime {

/// Pages of zeros of the process's own; they take memory once they are touched.
class AnonymousPages {
public:
  explicit AnonymousPages(uint64_t bytes) : bytes_(bytes) {
    base_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED)
      throw Error("no " + std::to_string(bytes) + " bytes of memory for blocks of a file: " + std::strerror(errno) +
                  "; smaller blocks or fewer of them would do");
    (void)::madvise(base_, bytes, MADV_HUGEPAGE); // a block in small pages is many segments to a disk
  }
  ~AnonymousPages() { ::munmap(base_, bytes_); }
  AnonymousPages(const AnonymousPages &) = delete;
  AnonymousPages &operator=(const AnonymousPages &) = delete;

  std::byte *at(uint64_t offset) const noexcept { return static_cast<std::byte *>(base_) + offset; }

private:
  const uint64_t bytes_;
  void *base_;
};

/// An engine, and for each block under way its standing and an aligned buffer. One call at a time uses it.
struct Lane {
  struct Slot {
    Range block;       ///< what is submitted, in whole units of the file
    Range wanted;      ///< the part of it that the caller wants, in the caller's memory
    uint64_t done = 0; ///< bytes of the block
    int stalls = 0;    ///< submissions that moved nothing
  };

  Lane(std::unique_ptr<BlockEngine> itsEngine, uint64_t itsBlockBytes)
      : engine(std::move(itsEngine)), blockBytes(itsBlockBytes), slots(engine->depth()),
        pages(engine->depth() * itsBlockBytes + 2 * pageBytes) {
    for (unsigned tag = 0; tag < slots.size(); ++tag)
      idle.push_back(tag);
  }

  std::byte *buffer(unsigned tag) const noexcept { return pages.at(tag * blockBytes); }
  /// The first and the last page of a write, of which it may leave bytes as they are.
  std::byte *edge(int index) const noexcept {
    return pages.at(slots.size() * blockBytes + uint64_t(index) * pageBytes);
  }

  const std::unique_ptr<BlockEngine> engine;
  const uint64_t blockBytes;
  std::vector<Slot> slots;    ///< by tag
  std::vector<unsigned> idle; ///< tags that are not under way
  const AnonymousPages pages;
};

} // namespace ds::runtime
