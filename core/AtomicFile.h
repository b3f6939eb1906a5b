//===- AtomicFile.h - files that appear whole or not at all ---------------===//
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ds {

/// Writes beside `path` and renames over it at commit, so that a reader never sees half a file. Without a commit the
/// temporary file is removed. Every failure throws ds::Error naming `path`.
class AtomicFile {
public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Flushes to the disk, renames, then flushes the folder, so that a crash leaves the old file or the new one.
  void commit();

private:
  [[noreturn]] void fail(const char *action) const;
  void discard() noexcept;

  std::string path_;
  std::string temporary_;
  int file_ = -1;
};

/// Throws ds::Error if the folder of `path` does not exist or may not be written to: known before the work is done.
void requireWritableFolder(const std::string &path);

/// A whole file at once.
void writeFileAtomically(const std::string &path, std::string_view bytes);

} // namespace ds
