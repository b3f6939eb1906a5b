//===- NvmeFile.h - bytes of a rank in a file of its own ------------------===//
#pragma once

#include "core/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ds::runtime {

class NvmeFaults;

struct NvmeOptions {
  uint64_t blockBytes = 1 << 20; ///< of one submission; a multiple of 4096. DeepSpeed: aio.block_size
  int queueDepth = 8;            ///< submissions under way of one call. DeepSpeed: aio.queue_depth
  bool checksums = false;        ///< CRC-32C of each page of the file, compared when it is read
  bool allowRing = true;         ///< io_uring, where the system has it; else pread and pwrite
  bool allowDirect = true;       ///< past the page cache (O_DIRECT), where the file system can
  NvmeFaults *faults = nullptr;  ///< for tests
};

/// A file of fixed size that begins as zeros and has no name, so that nothing is left behind however the process ends.
/// Its bytes are reserved when it is made, so that no disk is full later. Cf. DeepSpeed's AsyncTensorSwapper, POSIX
/// tmpfile.
class NvmeFile {
public:
  static constexpr int lanes = 4; ///< reads and writes at once; a fifth waits for one to end

  /// Throws ds::Error: no such folder, no room, no access.
  NvmeFile(const std::string &folder, uint32_t rank, uint64_t bytes, const NvmeOptions &options);
  ~NvmeFile();
  NvmeFile(const NvmeFile &) = delete;
  NvmeFile &operator=(const NvmeFile &) = delete;

  /// Any offset, address and length; straight to the caller's memory where that is aligned. From any thread. After a
  /// failure the target's bytes are anything, and nothing writes to it any more.
  Status read(uint64_t offset, std::span<std::byte> target) noexcept;
  /// Likewise. Not beside another write, or a read, of the same page (4096 bytes).
  Status write(uint64_t offset, std::span<const std::byte> source) noexcept;

  uint64_t bytes() const noexcept;
  /// How it reads and writes: "io_uring, 8 blocks of 1048576 bytes at once; direct, memory aligned to 512", or why not.
  const std::string &note() const noexcept;

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace ds::runtime
