//===- ChannelNorm.h - normalization of channels by given statistics ------===//
#pragma once

#include "dialects/Train/Train.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ds::train {

/// (x - mean) / sqrt(variance + epsilon) * scale + shift for each channel of x [N, C, ...]: batch_norm's inference
/// form. All else is [C].
mlir::Value normalizeChannels(mlir::ImplicitLocOpBuilder &builder, mlir::Value x, mlir::Value scale, mlir::Value shift,
                              mlir::Value mean, mlir::Value variance, double epsilon);

} // namespace ds::train
