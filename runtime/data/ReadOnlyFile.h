//===- ReadOnlyFile.h - files that data and weights are read from ---------===//
#pragma once

#include "core/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ds::runtime {

/// An open regular file, read by offset: nothing is mapped, so a file cut short under us is an error and not a signal,
/// and its pages are the system's, not this process's.
class ReadOnlyFile {
public:
  /// Throws ds::Error when it cannot be opened or is no regular file.
  explicit ReadOnlyFile(const std::string &path);
  ~ReadOnlyFile();
  ReadOnlyFile(ReadOnlyFile &&other) noexcept;
  ReadOnlyFile &operator=(ReadOnlyFile &&) = delete;

  const std::string &path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  /// Fills `target` from `offset` on. Allocates nothing.
  Status tryRead(uint64_t offset, std::span<std::byte> target) const noexcept;
  /// As tryRead; throws ds::Error.
  void read(uint64_t offset, std::span<std::byte> target) const;

private:
  std::string path_;
  int file_ = -1;
  uint64_t bytes_ = 0;
};

} // namespace ds::runtime
