//===- ConvBlocks.h - how convolutions cut their products -----------------===//
//
// Convolutions are products of matrices whose one side is gathered from the image, a block at a time (never the whole
// "im2col"): for each group
//   conv               y  [filters, places]  = w [filters, taps] * windows of x [taps, places]
//   conv_input_grad    windows of dx         = w^T [taps, filters] * dy [filters, places], added at their places
//   conv_weight_grad   dw [filters, taps]    = sum over samples of dy [filters, places] * (windows of x)^T [places,
//   taps]
// with taps = channels * elements of the window. Shared by the kernels and by conv_costs.cpp, so that
// a plan reserves what the kernels use. Blocks follow from the shapes alone.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"
#include "kernels/cpu/TileBlocks.h"

#include <algorithm>

namespace ds::kernels {

/// Groups of fewer filters make thin products: they are convolved directly, and need no workspace.
inline constexpr int64_t convDirectFilters = 4;
/// Elements of gathered windows at a time: 1 MiB of float32, half of a second-level cache.
inline constexpr int64_t convBlockElements = 1 << 18;
/// Most places of one product, and most taps of one that has to be added back or is a weight's gradient.
inline constexpr int64_t convBlockPlaces = 1024, convBlockTaps = 1024, convWeightTaps = 256;
/// Pieces that are enough for any number of workers we expect; fewer are cut further where the shape allows.
inline constexpr int64_t convEnoughPieces = 16;

constexpr int64_t convPieces(int64_t count, int64_t size) { return (count + size - 1) / size; }
/// `count` in equal blocks of at most `most`, which may be less than 1.
constexpr int64_t convEvenBlock(int64_t count, int64_t most) {
  return convPieces(count, convPieces(count, std::max<int64_t>(most, 1)));
}

/// The blocks of one convolution.
struct ConvBlocks {
  int64_t samples = 0, groups = 1, filters = 0, channels = 0, windows = 0, places = 0, elementBytes = 4;
  bool pointwise = false; ///< as far as the shapes tell: nothing needs to be gathered

  ConvBlocks() = default;
  ConvBlocks(const TensorType &x, const TensorType &w, const TensorType &y) {
    if (x.shape.size() < 3 || w.shape.size() < 3 || y.shape.size() < 3 || elementCount(x.shape) == 0 ||
        elementCount(w.shape) == 0 || elementCount(y.shape) == 0)
      return;
    samples = x.shape[0];
    channels = w.shape[1];
    groups = std::max<int64_t>(x.shape[1] / w.shape[1], 1);
    filters = std::max<int64_t>(w.shape[0] / groups, 1);
    windows = elementCount(w.shape) / (w.shape[0] * w.shape[1]);
    places = elementCount(y.shape) / (y.shape[0] * y.shape[1]);
    elementBytes = x.dtype == DType::F64 ? 8 : 4; // 16 bits are computed with as float32
    pointwise = windows == 1 && elementCount(x.shape) == samples * x.shape[1] * places;
  }

  int64_t taps() const { return channels * windows; }
  bool isDirect() const { return samples == 0 || filters < convDirectFilters; }

  /// conv: a piece is some places of a sample's group; so many taps are gathered at a time.
  int64_t forwardPlaces() const {
    int64_t most = convBlockPlaces;
    while (most > 64 && samples * groups * convPieces(places, most) < convEnoughPieces)
      most /= 2;
    return convEvenBlock(places, most);
  }
  int64_t forwardTaps() const { return convEvenBlock(taps(), convBlockElements / forwardPlaces()); }

  /// conv_input_grad: a piece is some channels of a sample's group; so many places are added back at a time.
  int64_t inputChannels() const {
    const int64_t wanted = std::min(convPieces(convEnoughPieces, samples * groups), channels);
    return convEvenBlock(channels, std::min(convBlockTaps / windows, convPieces(channels, wanted)));
  }
  int64_t inputPlaces() const { return convEvenBlock(places, convBlockElements / (inputChannels() * windows)); }

  /// conv_weight_grad: a piece is some taps of a group and a chunk of all samples' blocks of places.
  int64_t weightTaps() const { return convEvenBlock(taps(), convWeightTaps); }
  int64_t weightPlaces() const { return convEvenBlock(places, convBlockElements / convWeightTaps); }
  int64_t weightChunks() const {
    const int64_t tiles = groups * convPieces(taps(), weightTaps()),
                  blocks = samples * convPieces(places, weightPlaces());
    return std::clamp<int64_t>(convEnoughPieces / tiles, 1, blocks);
  }
  int64_t weightElements() const { return groups * filters * taps(); }

  /// Bytes of the partial sums of conv_weight_grad.
  int64_t sharedBytes() const {
    return isDirect() || weightChunks() <= 1 ? 0 : aligned(weightChunks() * weightElements() * elementBytes);
  }

  /// What a worker needs for the windows that it gathers at a time.
  int64_t forwardBytes() const { return gathers() ? aligned(forwardTaps() * forwardPlaces() * elementBytes) : 0; }
  int64_t inputBytes() const {
    return gathers() ? aligned(inputChannels() * windows * inputPlaces() * elementBytes) : 0;
  }
  int64_t weightBytes() const { return gathers() ? aligned(weightTaps() * weightPlaces() * elementBytes) : 0; }

  /// What a worker can use besides, to pack its products for tile registers.
  int64_t forwardTileBytes() const {
    return packs() ? aligned(tileScratchBytes(filters, forwardPlaces(), pointwise ? taps() : forwardTaps())) : 0;
  }
  int64_t inputTileBytes() const {
    const int64_t cols = !packs() ? 0 : pointwise ? places : inputPlaces();
    return packs() ? aligned(tileScratchBytes(inputChannels() * windows, cols, filters)) : 0;
  }
  int64_t weightTileBytes() const {
    return packs() ? aligned(tileScratchBytes(filters, weightTaps(), weightPlaces())) : 0;
  }

private:
  static constexpr int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  bool gathers() const { return !isDirect() && !pointwise; }
  bool packs() const { return !isDirect() && elementBytes == 4; }
};

} // namespace ds::kernels
