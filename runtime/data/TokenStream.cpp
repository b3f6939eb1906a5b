//===- TokenStream.cpp - raw tokens in files ------------------------------===//
#include "runtime/data/TokenStream.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/data/FileDigest.h"
#include "runtime/data/ReadOnlyFile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

bool endsWith(const std::string &text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// `count` tokens of one file, through a buffer on the stack.
Status readTokens(const ReadOnlyFile &file, uint64_t tokenBytes, uint64_t first, std::span<int64_t> target) noexcept {
  std::array<std::byte, 8192> buffer;
  const size_t most = buffer.size() / tokenBytes;
  while (!target.empty()) {
    const size_t count = std::min<size_t>(most, target.size());
    if (Status status = file.tryRead(first * tokenBytes, std::span(buffer).first(count * tokenBytes)); !status.ok())
      return status;
    for (size_t i = 0; i < count; ++i) {
      uint32_t token = 0; // files and machine are little-endian
      std::memcpy(&token, &buffer[i * tokenBytes], tokenBytes);
      target[i] = token;
    }
    first += count;
    target = target.subspan(count);
  }
  return Status::success();
}

} // namespace

bool isTokenFile(const std::string &path) { return endsWith(path, ".bin"); }

TokenStream::TokenStream(const std::vector<std::string> &paths) {
  for (const std::string &path : paths) {
    const uint64_t tokenBytes = endsWith(path, ".u32.bin") ? 4 : 2;
    ReadOnlyFile file(path);
    if (file.bytes() % tokenBytes != 0)
      throw Error(path + " has " + std::to_string(file.bytes()) + " bytes, no whole number of tokens of " +
                  std::to_string(tokenBytes) + " bytes");
    const uint64_t count = file.bytes() / tokenBytes;
    parts_.push_back({std::move(file), tokenBytes, tokens_, count});
    tokens_ += count;
  }
}

uint64_t TokenStream::digest() const {
  uint64_t digest = 0;
  for (const Part &part : parts_)
    digest = fileDigest(part.file, digest);
  return digest;
}

Status TokenStream::read(uint64_t first, std::span<int64_t> target) const noexcept {
  auto part = std::upper_bound(parts_.begin(), parts_.end(), first,
                               [](uint64_t token, const Part &candidate) { return token < candidate.first; });
  for (--part; !target.empty(); ++part) {
    const uint64_t within = first - part->first;
    const size_t count = std::min<uint64_t>(target.size(), part->tokens - within);
    if (Status status = readTokens(part->file, part->tokenBytes, within, target.first(count)); !status.ok())
      return status;
    first += count;
    target = target.subspan(count);
  }
  return Status::success();
}

} // namespace ds::runtime
