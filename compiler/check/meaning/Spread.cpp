//===- Spread.cpp - how ranks along an axis of the mesh share a value ------===//
#include "compiler/check/meaning/Spread.h"

#include <algorithm>
#include <numeric>

namespace ds::check {

uint64_t Cut::kept() const {
  uint64_t kept = 0;
  for (const Block &block : blocks)
    kept += block.size;
  return kept;
}

Cut Cut::normalized() const {
  Cut cut = *this;
  // Blocks that follow each other at equal distances are one block of as many tensors.
  const uint64_t count = cut.blocks.size(), distance = count > 0 ? cut.length / count : 0;
  bool isEven = count > 1 && cut.length % count == 0;
  for (uint64_t k = 0; k < count; ++k)
    isEven &= cut.blocks[k] == Block{k * distance, cut.blocks[0].stride, cut.blocks[0].size};
  if (isEven) {
    cut.outer *= count;
    cut.length = distance;
    cut.blocks.resize(1);
  }
  uint64_t common = cut.length;
  for (const Block &block : cut.blocks)
    for (const uint64_t part : {block.offset, block.stride, block.size})
      common = std::gcd(common, part);
  if (common > 1) {
    cut.length /= common;
    cut.inner *= common;
    for (Block &block : cut.blocks)
      block = {block.offset / common, block.stride / common, block.size / common};
  }
  return cut;
}

Cut Cut::of(std::span<const int64_t> shape, const proto::Shard &shard) {
  Cut cut;
  for (size_t d = 0; d < shape.size(); ++d)
    (d < shard.dimension() ? cut.outer : d == shard.dimension() ? cut.length : cut.inner) *= uint64_t(shape[d]);
  for (const proto::Block &block : shard.blocks())
    cut.blocks.push_back({block.offset(), block.stride(), block.size()});
  cut.repeat = std::max<uint64_t>(1, shard.repeat());
  return cut.normalized();
}

/// Of [outer, length, inner] laid flat.
std::vector<Cut::Block> Cut::blocksOfAll() const {
  std::vector<Block> all;
  for (uint64_t o = 0; o < outer; ++o)
    for (const Block &block : blocks)
      all.push_back({(o * length + block.offset) * inner, block.stride * inner, block.size * inner});
  return all;
}

std::optional<Cut::Slice> Cut::slice(uint64_t first, uint64_t size) const {
  const uint64_t parts = length / kept();
  Slice slice{0, {1, 0, 1, {}, repeat}};
  uint64_t begin = 0, next = 0; // of a rank's own elements; of the whole's
  for (const Block &block : blocksOfAll()) {
    const uint64_t end = begin + block.size;
    if (begin >= first && end <= first + size) {
      const bool isFirst = slice.cut.blocks.empty();
      slice.first = isFirst ? block.offset : slice.first;
      if (block.stride != block.size || (!isFirst && block.offset != next))
        return std::nullopt;
      slice.cut.blocks.push_back({block.offset - slice.first, block.stride, block.size});
      next = block.offset + block.size * parts;
    } else if (begin < first + size && end > first) {
      return std::nullopt;
    }
    begin = end;
  }
  if (slice.cut.blocks.empty() || first + size > begin)
    return std::nullopt;
  slice.cut.length = size * parts;
  slice.cut = slice.cut.normalized();
  return slice;
}

std::optional<Cut> Cut::concat(std::span<const Cut> cuts) {
  Cut all{1, 0, 1, {}, cuts[0].repeat};
  for (const Cut &cut : cuts) {
    if (cut.repeat != all.repeat || cut.length / cut.kept() != cuts[0].length / cuts[0].kept())
      return std::nullopt;
    for (const Block &block : cut.blocksOfAll())
      all.blocks.push_back({all.length + block.offset, block.stride, block.size});
    all.length += cut.outer * cut.length * cut.inner;
  }
  return all.normalized();
}

Cut Cut::inParts(uint64_t outer, uint64_t parts, uint64_t inner) { return {outer, parts, inner, {{0, 1, 1}}}; }

std::string Spread::key() const {
  std::string key = std::to_string(axis) + " " + std::to_string(int(partial));
  if (isPartial())
    return key;
  for (const uint64_t number : {cut.outer, cut.length, cut.inner, cut.repeat})
    key += " " + std::to_string(number);
  for (const Cut::Block &block : cut.blocks)
    for (const uint64_t number : {block.offset, block.stride, block.size})
      key += " " + std::to_string(number);
  return key;
}

} // namespace ds::check
