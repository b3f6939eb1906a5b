//===- ScratchFile.h - a file without a name ------------------------------===//
#pragma once

#include "runtime/nvme/Block.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::runtime {

/// A file of zeros that is gone when it is closed, however the process ends.
class ScratchFile {
public:
  /// `name` for sentences: "rank 3's file in /fast". Throws ds::Error where there is no such folder or no room.
  ScratchFile(const std::string &folder, std::string name, uint64_t bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile &) = delete;
  ScratchFile &operator=(const ScratchFile &) = delete;

  int descriptor() const noexcept { return file_; }
  bool reserved() const noexcept { return reserved_; } ///< or the disk may be full later

  /// Past the page cache from now on (O_DIRECT): what that wants, or nothing and why not.
  std::optional<Alignment> goDirect(std::string &refusal);
  void goBuffered() noexcept;

private:
  void open(const std::string &folder);
  void reserve(const std::string &folder, uint64_t bytes);
  [[noreturn]] void failForRoom(const std::string &folder, uint64_t bytes, uint64_t free) const;

  const std::string name_;
  int file_ = -1;
  bool reserved_ = true;
};

} // namespace ds::runtime
