//===- CostModel.h - how long work takes, roughly ---------------------------===//
#pragma once

#include <algorithm>

namespace ds {

/// What a rank does in a second, as a machine file has it in `rates`.
struct Rates {
  double bytes = 0;                           // of device memory, read and written; 0: the machine says no rates
  double commandSeconds = 0;                  // of a command that does nothing
  double float32 = 0, tf32 = 0, bfloat16 = 0; // FLOP of large products, by what they multiply
  double attention = 0;                       // FLOP of attention in 16 bits, which reaches less than a product

  bool known() const { return bytes > 0; }
  bool operator==(const Rates &) const = default;
};

/// What one command does.
struct Work {
  double flops = 0;
  double bytes = 0;                                                // read or written, each once
  enum Kind { Float32, Tf32, Bits16, Attention16 } kind = Float32; // of the FLOP
};

/// Seconds of work on one rank. With rates, the longer of its FLOP and its bytes (the roofline; Williams, Waterman and
/// Patterson, 2009), and what a command takes. Without, 100 GFLOP/s and then 10 GB/s: no measure of any machine, only
/// ratios matter.
inline double seconds(const Work &work, const Rates &rates) {
  if (!rates.known())
    return work.flops / 1e11 + work.bytes / 1e10;
  const double flops[] = {rates.float32, rates.tf32, rates.bfloat16, rates.attention};
  return rates.commandSeconds + std::max(work.flops / flops[work.kind], work.bytes / rates.bytes);
}

/// The kind of a call: `bits` of what it multiplies.
inline Work::Kind workKind(bool attention, unsigned bits, bool tf32) {
  if (bits == 16)
    return attention ? Work::Attention16 : Work::Bits16;
  return tf32 ? Work::Tf32 : Work::Float32;
}

} // namespace ds
