//===- CostModel.h - how long work takes, roughly ---------------------------===//
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace ds {

/// What a rank does in a second, as a machine file has it in `rates`.
struct Rates {
  double bytes = 0;                           // of device memory, read and written; 0: the machine says no rates
  double commandSeconds = 0;                  // of a command that does nothing
  double float32 = 0, tf32 = 0, bfloat16 = 0; // FLOP of large products, by what they multiply
  double fp8 = 0;                             // the same; 0: the device has none, and computes these with bfloat16
  double attention = 0;                       // FLOP of attention in 16 bits, which reaches less than a product
  double multiprocessors = 0;                 // of a GPU, no rate; 0: shapes and kernels do not matter

  bool known() const { return bytes > 0; }
  bool operator==(const Rates &) const = default;
};

/// Of the processors beside a device of these rates, on which queues of the host run. A GPU's host is assumed to read
/// and write memory as fast as its link to the GPU carries bytes one way, since it is built to feed that: a DGX H100
/// has 77 GB/s a GPU and a link of 63, a DGX A100 51 and 31.5, a DGX-2 16 and 16. Where the link is unknown, so are
/// they.
inline Rates ratesOfHost(const Rates &device, double linkBytes, double linkLatency) {
  if (device.multiprocessors == 0) // the device is the host
    return device;
  constexpr double flops = 1e11; // updates and sums wait for memory
  return {.bytes = linkBytes,
          .commandSeconds = linkLatency,
          .float32 = flops,
          .tf32 = flops,
          .bfloat16 = flops,
          .attention = flops};
}

/// `count` products [rows, depth] by [depth, columns].
struct ProductShape {
  double count = 0, rows = 0, columns = 0, depth = 0;
};

/// What one command does.
struct Work {
  double flops = 0;
  double bytes = 0;                                                       // read and written, what is both twice
  enum Kind { Float32, Tf32, Bits16, Bits8, Attention16 } kind = Float32; // of the FLOP
  // Of machines without rates alone:
  double hiddenFlops = 0; // that a causal mask spares
  double bytesAgain = 0;  // of `bytes`, of what is read and written the second time
  // Of GPUs alone:
  ProductShape product = {};
  double scratch = 0;     // bytes that one pass writes and the next reads, beside no FLOP
  double memoryShare = 1; // of the memory's rate, that the kernel reaches
  bool isPlain = false;   // attention by our own kernel, where no library takes it
};

/// The part of the rate of large products that one of this shape reaches, of 16 bits. A multiprocessor computes tiles
/// of 128 x 256, one after another, so tiles and waves of them are whole (NVIDIA, Matrix Multiplication Background
/// User's Guide, 2023, chapter 3). A tile takes as long as `fill` more of depth: on Hopper four stages of 64 fill the
/// shared memory before the first product. Where tiles are few, their depth is split into parts, whose float32 sums are
/// written and read: 8 bytes an element, for which an H100's multiprocessor needs as long as for `split` of depth.
inline double shareOfRate(const ProductShape &product, double multiprocessors) {
  constexpr double tileRows = 128, tileColumns = 256, fill = 256, split = 1024, mostParts = 16;
  if (product.count == 0)
    return 1;
  const auto tilesOf = [&](double height, double width) {
    return product.count * std::ceil(product.rows / height) * std::ceil(product.columns / width);
  };
  const double tiles = std::min(tilesOf(tileRows, tileColumns), tilesOf(tileColumns, tileRows));
  double least = std::numeric_limits<double>::infinity();
  for (double parts = 1; parts <= mostParts; ++parts)
    least = std::min(least, std::ceil(tiles * parts / multiprocessors) *
                                (product.depth / parts + fill + (parts > 1 ? split : 0)));
  const double full = product.count * product.rows * product.columns / (tileRows * tileColumns) / multiprocessors;
  return full * product.depth / least;
}

/// Seconds of work on one rank. With rates, the longer of its FLOP and its bytes (the roofline; Williams, Waterman and
/// Patterson, 2009), and what a command takes. Without, 100 GFLOP/s and then 10 GB/s: no measure of any machine, only
/// ratios matter. These are of operands that count once and of all scores, as the tables of docs/offload.md are.
inline double seconds(const Work &work, const Rates &rates) {
  if (!rates.known())
    return (work.flops + work.hiddenFlops) / 1e11 + (work.bytes - work.bytesAgain) / 1e10;
  const double fp8 = rates.fp8 > 0 ? rates.fp8 : rates.bfloat16;
  const double peaks[] = {rates.float32, rates.tf32, rates.bfloat16, fp8, rates.attention};
  const double peak = peaks[work.kind];
  if (rates.multiprocessors == 0)
    return rates.commandSeconds + std::max(work.flops / peak, work.bytes / rates.bytes);
  constexpr double plainShare = 1.0 / 8; // assumed: a thread an element, scalar operations
  const double flops =
      work.isPlain ? plainShare * rates.float32 : peak * shareOfRate(work.product, rates.multiprocessors);
  return rates.commandSeconds + std::max(work.flops / flops, work.bytes / (work.memoryShare * rates.bytes)) +
         work.scratch / rates.bytes;
}

/// The kind of a call: `bits` of what it multiplies.
inline Work::Kind workKind(bool attention, unsigned bits, bool tf32) {
  if (bits == 8)
    return Work::Bits8;
  if (bits == 16)
    return attention ? Work::Attention16 : Work::Bits16;
  return tf32 ? Work::Tf32 : Work::Float32;
}

} // namespace ds
