//===- norm_factory.h - norms of each row, on a CPU ------------------------===//
#pragma once

#include "kernels/Call.h"
#include "kernels/cpu/Widened.h"

namespace ds::kernels {

/// Of a call on float32 that stands for one on `narrow`, or on floats that are computed with as they are.
template <template <typename> typename Norm, typename NormCall, DType narrow>
std::unique_ptr<Kernel> makeWideNorm(const Invocation &invocation, const BuildOptions &) {
  NormCall call{Call(invocation)};
  if (isNarrowFloat(narrow))
    call.roundsTo = narrow;
  return makeByFloat<Norm>(call.dtype, call);
}

/// A norm of floats of any size. Of 16 bits it is computed on float32 copies, as everything on a CPU, but rounds a sum
/// before it normalizes it.
template <template <typename> typename Norm, typename NormCall>
std::unique_ptr<Kernel> makeNorm(const Invocation &invocation, const BuildOptions &options) {
  switch (Call(invocation).dtype()) {
  case DType::BF16:
    return makeWidened(invocation, options, makeWideNorm<Norm, NormCall, DType::BF16>);
  case DType::F16:
    return makeWidened(invocation, options, makeWideNorm<Norm, NormCall, DType::F16>);
  default:
    return makeWideNorm<Norm, NormCall, DType::F32>(invocation, options);
  }
}

} // namespace ds::kernels
