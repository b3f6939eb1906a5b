//===- FileDigest.cpp - whether two processes read the same file ----------===//
#include "runtime/data/FileDigest.h"

#include "core/Crc32c.h"
#include "runtime/data/ReadOnlyFile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::runtime {

uint64_t fileDigest(const ReadOnlyFile &file, uint64_t before) {
  constexpr uint64_t pieceBytes = uint64_t(1) << 16, mostPieces = 4096;
  const uint64_t size = file.bytes();
  const std::array<uint64_t, 2> begin = {before, size};
  uint32_t crc = crc32c(std::as_bytes(std::span(begin)));
  const uint64_t pieces = std::min(mostPieces, (size + pieceBytes - 1) / pieceBytes);
  std::vector<std::byte> piece(std::min(pieceBytes, size));
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint64_t spread = pieces > 1 ? uint64_t((unsigned __int128)(size - piece.size()) * i / (pieces - 1)) : 0;
    const uint64_t at = pieces < mostPieces ? i * pieceBytes : spread;
    const auto part = std::span(piece).first(std::min<uint64_t>(piece.size(), size - at));
    file.read(at, part);
    crc = crc32c(part, crc);
  }
  return uint64_t(crc) << 32 | crc32c(std::as_bytes(std::span(&crc, 1)), uint32_t(size));
}

} // namespace ds::runtime
