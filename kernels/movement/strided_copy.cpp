#include "kernels/movement/strided_copy.h"

#include "kernels/Call.h"

#include <algorithm>
#include <cstring>

namespace ds::kernels {

namespace {

/// Bytes of one piece, roughly, and the longest run that stays in one.
constexpr int64_t grainBytes = 64 << 10;
/// Edge of the square blocks of a transposition: as many cache lines as fit the first-level cache with room to spare.
constexpr int64_t transposeBlock = 32;

using Dimension = StridedCopy::Dimension;

/// A block [across, along], element by element, in squares so that both sides use up the cache lines they touch.
template <typename T> void copyBlock(const std::byte *from, std::byte *to, Dimension across, Dimension along) {
  const T *source = reinterpret_cast<const T *>(from);
  T *target = reinterpret_cast<T *>(to);
  for (int64_t j = 0; j < along.size; j += transposeBlock)
    for (int64_t i = 0; i < across.size; ++i)
      for (int64_t k = j; k < std::min(j + transposeBlock, along.size); ++k)
        target[i * across.to + k * along.to] = source[i * across.from + k * along.from];
}

void copyBlockOf(int64_t elementBytes, const std::byte *from, std::byte *to, Dimension across, Dimension along) {
  switch (elementBytes) {
  case 1:
    return copyBlock<uint8_t>(from, to, across, along);
  case 2:
    return copyBlock<uint16_t>(from, to, across, along);
  case 4:
    return copyBlock<uint32_t>(from, to, across, along);
  default:
    return copyBlock<uint64_t>(from, to, across, along);
  }
}

} // namespace

StridedCopy::StridedCopy(std::vector<Dimension> dimensions, int64_t elementBytes)
    : outer_(std::move(dimensions)), elementBytes_(elementBytes) {
  merge();
  if (!outer_.empty()) {
    along_ = outer_.back();
    outer_.pop_back();
  }
  // Where the source's inner dimension is another one, rows become blocks over both.
  if (along_.from != 1)
    for (size_t d = 0; d < outer_.size(); ++d)
      if (outer_[d].from == 1) {
        across_ = {std::min(outer_[d].size, transposeBlock), outer_[d].from, outer_[d].to};
        if (outer_[d].size % transposeBlock == 0 || outer_[d].size <= transposeBlock)
          outer_[d] = {piecesOf(outer_[d].size, transposeBlock), outer_[d].from * transposeBlock,
                       outer_[d].to * transposeBlock};
        else { // odd sizes: the whole dimension is the block
          across_.size = outer_[d].size;
          outer_[d].size = 1;
        }
        break;
      }
  // A very long run becomes rows.
  const int64_t longest = grainBytes / elementBytes_;
  if (along_.size > longest && along_.size % longest == 0) {
    outer_.push_back({along_.size / longest, along_.from * longest, along_.to * longest});
    along_.size = longest;
  }
  for (const Dimension &dimension : outer_)
    rows_ *= dimension.size;
  const int64_t rowBytes = along_.size * across_.size * elementBytes_;
  rowsPerPiece_ = std::max<int64_t>(1, grainBytes / std::max<int64_t>(rowBytes, 1));
}

void StridedCopy::merge() {
  std::vector<Dimension> merged;
  for (const Dimension &dimension : outer_) {
    if (dimension.size == 1)
      continue;
    if (!merged.empty() && merged.back().from == dimension.from * dimension.size &&
        merged.back().to == dimension.to * dimension.size) {
      merged.back() = {merged.back().size * dimension.size, dimension.from, dimension.to};
    } else {
      merged.push_back(dimension);
    }
  }
  outer_ = std::move(merged);
}

StridedCopy::Offsets StridedCopy::offsetsOf(int64_t row) const {
  Offsets at{0, 0};
  for (size_t d = outer_.size(); d-- > 0;) {
    at.from += row % outer_[d].size * outer_[d].from;
    at.to += row % outer_[d].size * outer_[d].to;
    row /= outer_[d].size;
  }
  return at;
}

void StridedCopy::copyRows(const std::byte *from, std::byte *to, int64_t first, int64_t count) const {
  const bool runs = across_.size == 1 && along_.from == 1 && along_.to == 1;
  for (int64_t row = first; row < first + count; ++row) {
    const Offsets at = offsetsOf(row);
    const std::byte *source = from + at.from * elementBytes_;
    std::byte *target = to + at.to * elementBytes_;
    if (runs)
      std::memcpy(target, source, size_t(along_.size * elementBytes_));
    else
      copyBlockOf(elementBytes_, source, target, across_, along_);
  }
}

void StridedCopy::run(const CallContext &context, const std::byte *from, std::byte *to) const noexcept {
  if (along_.size == 0 || across_.size == 0)
    return;
  parallelFor(context, piecesOf(rows_, rowsPerPiece_), [&](int64_t piece, int) {
    const int64_t first = piece * rowsPerPiece_;
    copyRows(from, to, first, std::min(rowsPerPiece_, rows_ - first));
  });
}

} // namespace ds::kernels
