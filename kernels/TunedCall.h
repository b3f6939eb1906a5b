//===- TunedCall.h - how fast a library's algorithms are for a call -------===//
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ds::kernels {

/// What `ds-run --tune` found for one call, on one GPU.
struct TunedCall {
  /// One of the library's algorithms.
  struct Trial {
    double seconds;  ///< of a call
    bool isSameBits; ///< its results are those of the library's own choice, on operands drawn until a difference shows
  };
  std::vector<Trial> trials; ///< the library's own choice first; empty: the call is no library's
  size_t chosen = 0;         ///< of trials
  std::string algorithm;     ///< LibraryAlgorithm::bytes of `chosen`; empty: the library's own choice stays
};

} // namespace ds::kernels
