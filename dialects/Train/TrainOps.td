//===- TrainOps.td - all ops of the dialect -------------------------------===//
#ifndef DS_TRAIN_OPS_TD
#define DS_TRAIN_OPS_TD

include "dialects/Train/AttentionOps.td"
include "dialects/Train/ConvOps.td"
include "dialects/Train/ElementwiseOps.td"
include "dialects/Train/IndexOps.td"
include "dialects/Train/LinearOps.td"
include "dialects/Train/LossOps.td"
include "dialects/Train/ModuleAttributes.td"
include "dialects/Train/MovementOps.td"
include "dialects/Train/NormOps.td"
include "dialects/Train/OptimizerOps.td"
include "dialects/Train/StateOps.td"

#endif // DS_TRAIN_OPS_TD
