//===- momentum_operand.h - a beta that a schedule may cycle ---------------===//
#pragma once

namespace ds::kernels {

/// beta1 of this update: the attribute, or operand `momentum` where a schedule cycles it.
template <typename CallT> double beta1Of(const CallT &call, const void *momentum) {
  return call.cycled ? *static_cast<const double *>(momentum) : call.beta1;
}

} // namespace ds::kernels
