//===- Overlaps.h - which buffers ever live together ----------------------===//
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds::scheduling {

/// A square of bits: which buffers ever live together.
class Overlaps {
public:
  explicit Overlaps(size_t size) : size_(size), words_((size + 63) / 64), bits_(size * words_) {}

  bool meet(size_t a, size_t b) const { return bits_[a * words_ + b / 64] >> (b % 64) & 1; }
  /// A bit for each buffer, in words of 64.
  std::span<const uint64_t> row(size_t a) const { return {bits_.data() + a * words_, words_}; }

  void add(size_t a, std::span<const uint64_t> others) {
    for (size_t w = 0; w < words_; ++w)
      bits_[a * words_ + w] |= others[w];
  }
  void mirror() {
    for (size_t a = 0; a < size_; ++a)
      for (size_t w = 0; w < words_; ++w)
        for (uint64_t rest = bits_[a * words_ + w]; rest != 0; rest &= rest - 1)
          bits_[(w * 64 + size_t(std::countr_zero(rest))) * words_ + a / 64] |= uint64_t(1) << (a % 64);
  }

private:
  size_t size_, words_;
  std::vector<uint64_t> bits_;
};

} // namespace ds::scheduling
