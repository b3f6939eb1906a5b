//===- NvmeFiles.h - every way in which a rank's file is read -------------===//
#pragma once

#include "runtime/nvme/NvmeFile.h"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace ds::test {

using runtime::NvmeFile;
using runtime::NvmeOptions;

constexpr uint64_t page = 4096;

/// Small blocks, so that small files have many.
inline NvmeOptions smallBlocks(bool ring = true, bool direct = true, bool checksums = false) {
  return {.blockBytes = 2 * page, .queueDepth = 4, .checksums = checksums, .allowRing = ring, .allowDirect = direct};
}

/// With a ring and without, direct and through the page cache, with checksums and without.
inline std::vector<NvmeOptions> everyWay() {
  std::vector<NvmeOptions> ways;
  for (const bool ring : {true, false})
    for (const bool direct : {true, false})
      for (const bool checksums : {false, true})
        ways.push_back(smallBlocks(ring, direct, checksums));
  return ways;
}

inline std::vector<std::byte> randomBytes(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte &byte : bytes)
    byte = std::byte(generator());
  return bytes;
}

#define EXPECT_OK(call)                                                                                                \
  do {                                                                                                                 \
    const ::ds::Status status_ = (call);                                                                               \
    EXPECT_TRUE(status_.ok()) << status_.message();                                                                    \
  } while (false)

/// Reads and writes of any offset, address and length, and what the file must hold after them.
class ModelledFile {
public:
  ModelledFile(NvmeFile &file, uint64_t begin, uint64_t end, uint32_t seed)
      : file_(file), begin_(begin), model_(end - begin), memory_(end - begin + page), generator_(seed) {}

  void doSomething() {
    const auto [offset, bytes] = randomRange();
    const std::span<std::byte> memory = std::span(memory_).subspan(upTo(3) == 0 ? upTo(page) : aligned(), bytes);
    const std::span<std::byte> model = std::span(model_).subspan(offset, bytes);
    if (upTo(1) == 0) {
      for (size_t i = 0; i < bytes; i += 1 + upTo(100))
        memory[i] = std::byte(generator_());
      EXPECT_OK(file_.write(begin_ + offset, memory));
      std::copy(memory.begin(), memory.end(), model.begin());
      return;
    }
    EXPECT_OK(file_.read(begin_ + offset, memory));
    EXPECT_TRUE(std::equal(memory.begin(), memory.end(), model.begin())) << offset << " " << bytes;
  }

private:
  uint64_t upTo(uint64_t most) { return std::uniform_int_distribution<uint64_t>(0, most)(generator_); }
  uint64_t aligned() const { return (page - reinterpret_cast<uintptr_t>(memory_.data()) % page) % page; }

  /// Of any length, of pages, or within one page.
  std::pair<uint64_t, uint64_t> randomRange() {
    uint64_t offset = upTo(model_.size()), bytes = upTo(model_.size() - offset);
    if (const uint64_t kind = upTo(3); kind == 0)
      bytes = std::min<uint64_t>(bytes, upTo(200));
    else if (kind < 3) {
      offset = offset / page * page;
      bytes = bytes / page * page;
    }
    return {offset, bytes};
  }

  NvmeFile &file_;
  const uint64_t begin_;
  std::vector<std::byte> model_;
  std::vector<std::byte> memory_;
  std::mt19937 generator_;
};

} // namespace ds::test
