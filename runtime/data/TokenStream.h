//===- TokenStream.h - raw tokens in files --------------------------------===//
#pragma once

#include "core/Status.h"
#include "runtime/data/ReadOnlyFile.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// Files of little-endian tokens, `.u32.bin` with four bytes each and any other `.bin` with two, read as one stream.
class TokenStream {
public:
  /// Throws ds::Error for a file that is no whole number of tokens.
  explicit TokenStream(const std::vector<std::string> &paths);

  uint64_t tokens() const { return tokens_; }
  /// Of the files, in their order; cf. fileDigest.
  uint64_t digest() const;
  /// Writes `count` tokens from `first` on as int64.
  Status read(uint64_t first, std::span<int64_t> target) const noexcept;

private:
  struct Part {
    ReadOnlyFile file;
    uint64_t tokenBytes;
    uint64_t first; // token of the stream that it begins with
    uint64_t tokens;
  };
  std::vector<Part> parts_;
  uint64_t tokens_ = 0;
};

/// Whether a path names a token file.
bool isTokenFile(const std::string &path);

} // namespace ds::runtime
