//===- AtomicFile.h - files that appear whole or not at all ---------------===//
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ds {

/// Writes beside `path` and renames over it at commit, so that a reader never sees half a file. Without a commit the
/// temporary file is removed. Every failure throws ds::Error naming `path`.
class AtomicFile {
public:
  /// Uncached: past the page cache where the file system can (O_DIRECT), which a processor that is busy otherwise is
  /// glad of: for large files that are not read again soon.
  enum class Cache { Cached, Uncached };

  explicit AtomicFile(std::string path, Cache cache = Cache::Cached);
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
  void writeBlock();

  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  std::string path_;
  std::string temporary_;
  int file_ = -1;
  std::unique_ptr<std::byte[], Free> block_; ///< what is written uncached goes in blocks of one size and alignment
  size_t filled_ = 0;                        ///< bytes of the block
};

/// Throws ds::Error if the folder of `path` does not exist or may not be written to: known before the work is done.
void requireWritableFolder(const std::string &path);

/// A whole file at once.
void writeFileAtomically(const std::string &path, std::string_view bytes);

} // namespace ds
