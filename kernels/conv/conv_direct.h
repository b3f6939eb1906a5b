//===- conv_direct.h - convolutions that need no workspace ----------------===//
#pragma once

#include "kernels/conv/conv_call.h"

#include <memory>

namespace ds::kernels {

std::unique_ptr<Kernel> makeConvDirect(const ConvForwardCall &call);
std::unique_ptr<Kernel> makeConvInputGradDirect(const ConvCall &call);
std::unique_ptr<Kernel> makeConvWeightGradDirect(const ConvCall &call);

} // namespace ds::kernels
